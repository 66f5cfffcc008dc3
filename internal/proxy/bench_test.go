package proxy

import (
	"fmt"
	"net"
	"net/netip"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
	"time"
)

// fill gives the cluster n Services with three endpoints each.
func (c cluster) fill(n int) {
	for i := range n {
		s := service(fmt.Sprint("filler-", i), fmt.Sprintf("10.%d.%d.%d", 100+i>>16, i>>8&255, i&255))
		c.services.put(s)
		c.slices.put(slice(s, fmt.Sprintf("10.245.%d.%d", i>>8, i&255), fmt.Sprintf("10.246.%d.%d", i>>8, i&255), fmt.Sprintf("10.247.%d.%d", i>>8, i&255)))
	}
}

func quantiles(b *testing.B, list []time.Duration) {
	slices.Sort(list)
	b.ReportMetric(float64(list[len(list)/2].Microseconds())/1000, "p50-ms")
	b.ReportMetric(float64(list[len(list)*99/100].Microseconds())/1000, "p99-ms")
	b.ReportMetric(0, "ns/op")
}

// From what an informer tells to a first packet through the Service: an endpoint more or less, and a new Service.
func BenchmarkChange(b *testing.B) {
	for _, n := range []int{1, 2000, 5000} {
		for _, what := range []string{"endpoint", "service"} {
			b.Run(fmt.Sprintf("%s/services=%d", what, n), func(b *testing.B) {
				h := newHost(b)
				a := h.pod()
				a.serve("a", 8080)
				h.cluster.fill(n)
				began := time.Now()
				h.up()
				b.ReportMetric(time.Since(began).Seconds(), "load-s")
				var list []time.Duration
				i := 0
				for b.Loop() {
					s := service(fmt.Sprintf("new-%d", i), fmt.Sprintf("10.96.%d.%d", i>>8&255, i&255))
					i++
					if what == "endpoint" {
						h.put(s)
					} else {
						h.cluster.slices.put(slice(s, a.addr+"@"))
						h.caughtUp()
					}
					began := time.Now()
					if what == "endpoint" {
						h.cluster.slices.put(slice(s, a.addr+"@"))
					} else {
						h.cluster.services.put(s)
					}
					for { // refused, or nowhere, until the kernel has it
						c, err := net.DialTimeout("tcp4", s.Spec.ClusterIP+":80", 2*time.Millisecond)
						if err == nil {
							c.Close() //nolint:errcheck // a benchmark's
							break
						}
					}
					list = append(list, time.Since(began))
					h.cluster.services.remove("default", s.Name)
					h.cluster.slices.remove("default", s.Name+"-1")
					h.caughtUp()
				}
				quantiles(b, list)
			})
		}
	}
}

// The time of a first packet's way there and back, with few and many Services.
func BenchmarkFirstPacket(b *testing.B) {
	for _, n := range []int{1, 10000, 1, 10000} {
		b.Run(fmt.Sprintf("services=%d", n), func(b *testing.B) {
			h := newHost(b)
			a := h.pod()
			a.serve("a", 8053)
			h.cluster.fill(n)
			h.up()
			dns := service("dns", "10.96.0.53", port(53, 0, "UDP"))
			h.put(dns, a.addr+"@")
			var list []time.Duration
			buf := make([]byte, 100)
			for b.Loop() {
				c, err := net.Dial("udp4", "10.96.0.53:53") // a connection of its own for each
				if err != nil {
					b.Fatal(err)
				}
				began := time.Now()
				if _, err := c.Write([]byte("x")); err != nil {
					b.Fatal(err)
				}
				if _, err := c.Read(buf); err != nil {
					b.Fatal(err)
				}
				list = append(list, time.Since(began))
				c.Close() //nolint:errcheck // a benchmark's
			}
			quantiles(b, list)
		})
	}
}

// What the kernel does with one of many Services, read from the kernel.
func BenchmarkInspect(b *testing.B) {
	for _, n := range []int{1, 5000} {
		b.Run(fmt.Sprintf("services=%d", n), func(b *testing.B) {
			h := newHost(b)
			h.cluster.fill(n)
			h.up()
			s := service("web", "10.96.0.1", port(80, 30080))
			h.put(s, "10.244.0.5@", "10.244.1.5")
			var list []time.Duration
			for b.Loop() {
				began := time.Now()
				if r := h.proxy.Inspect("default", "web", netip.Addr{}); len(r.Calls) != 4 || !r.Calls[0].Agrees() {
					b.Fatalf("%+v", r)
				}
				list = append(list, time.Since(began))
			}
			quantiles(b, list)
		})
	}
}

// What 2,000 Services cost in memory, the daemon's own and the kernel's.
func BenchmarkMemory(b *testing.B) {
	h := newHost(b)
	h.up()
	rest := func() (int64, int64) {
		debug.FreeOSMemory()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc), slab(b)
	}
	h.cluster.fill(0)
	heap, kernel := rest()
	h.down()
	h.cluster.fill(2000)
	filled, _ := rest()
	h.up()
	for b.Loop() {
	}
	heap2, kernel2 := rest()
	b.ReportMetric(float64(filled-heap)/(1<<20), "objects-MiB")
	b.ReportMetric(float64(heap2-filled)/(1<<20), "proxy-MiB")
	b.ReportMetric(float64(kernel2-kernel)/(1<<20), "slab-MiB")
	b.ReportMetric(0, "ns/op")
}

// slab is the kernel's memory in slabs, in bytes.
func slab(b *testing.B) (n int64) {
	data, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		b.Fatal(err)
	}
	for line := range strings.Lines(string(data)) {
		if rest, ok := strings.CutPrefix(line, "SUnreclaim:"); ok {
			if _, err := fmt.Sscan(rest, &n); err != nil {
				b.Fatal(err)
			}
		}
	}
	return n << 10
}
