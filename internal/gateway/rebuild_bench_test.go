package gateway

import (
	"fmt"
	"net/netip"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"

	"minik8s/internal/gateway/routes"
)

// BenchmarkRebuild is what a change of one object costs beside many others, without listeners; and what a look-up costs then.
func BenchmarkRebuild(b *testing.B) {
	for _, n := range []int{1, 100, 1000} {
		var services kind[*corev1.Service]
		var endpointSlices kind[*discoveryv1.EndpointSlice]
		f := &front{}
		for i := range n {
			for _, path := range []string{"/a", "/b", "/c/d"} {
				f.set.Routes = append(f.set.Routes, route(fmt.Sprintf("host-%d.minik8s", i), path, func(r *routes.Route) {
					r.Owner.Name, r.Address = fmt.Sprint(i), netip.AddrFrom4([4]byte{10, 8, byte(i >> 8), byte(i)})
					r.Backend.Service = fmt.Sprint("web-", i)
				}))
			}
		}
		g := New(Config{}, &services, &endpointSlices, f)
		g.doors.closing = true // no listeners
		b.Run(fmt.Sprintf("objects=%d", n), func(b *testing.B) {
			for b.Loop() {
				g.rebuild()
			}
		})
		b.Run(fmt.Sprintf("find/objects=%d", n), func(b *testing.B) {
			at, t := netip.AddrFrom4([4]byte{10, 8, byte((n - 1) >> 8), byte(n - 1)}), g.Table()
			name := fmt.Sprintf("host-%d.minik8s", n-1)
			for b.Loop() {
				if t.Find(at, name, "/c/d/e/f") == nil {
					b.Fatal("no route")
				}
			}
		})
	}
}
