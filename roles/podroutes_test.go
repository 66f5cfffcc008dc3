package roles_test

import (
	"context"
	"strings"
	"testing"

	"github.com/vishvananda/netlink"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"minik8s/internal/api"
	"minik8s/internal/client"
)

// The host has a route to the pods of each other Node while that exists, also while no daemon runs; clean takes it
// away.
func TestRoutesToOtherNodes(t *testing.T) {
	needRoot(t)
	p := newProcess(t)
	c := p.up()
	route := func() string {
		routes, err := netlink.RouteList(nil, netlink.FAMILY_V4)
		if err != nil {
			t.Error(err)
		}
		for _, r := range routes {
			if r.Dst != nil && strings.HasPrefix(r.Dst.String(), "10.244.77.") {
				return r.Dst.String() + " by " + r.Gw.String()
			}
		}
		return ""
	}
	other := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "other"}, Spec: corev1.NodeSpec{PodCIDR: "10.244.77.0/24"},
		Status: corev1.NodeStatus{Addresses: []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: "192.0.2.77"}}}}
	p.make(c, other)
	if _, err := c.Update(context.Background(), other, client.WriteOptions{Subresource: "status"}); err != nil {
		t.Fatal(err)
	}
	const want = "10.244.77.0/24 by 192.0.2.77"
	p.eventually("a route to its pods", func() bool { return route() == want })
	p.kill()
	if got := route(); got != want {
		t.Errorf("after the daemon's death: %q", got)
	}
	c = p.up()
	if got := route(); got != want {
		t.Errorf("after a restart: %q", got)
	}
	if _, err := c.Delete(context.Background(), client.Key{Kind: api.Nodes, Name: "other"}, nil); err != nil {
		t.Fatal(err)
	}
	p.eventually("no route to its pods", func() bool { return route() == "" })
}
