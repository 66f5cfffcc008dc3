package peers

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"minik8s/internal/api"
	"minik8s/internal/api/minik8s"
	"minik8s/internal/client"
	"minik8s/internal/client/local"
	"minik8s/internal/informer"
	"minik8s/internal/network/overlay"
	"minik8s/internal/registry"
	"minik8s/internal/registry/registrytest"
)

func node(name, created, cidr string, addrs ...string) *corev1.Node {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.NodeSpec{PodCIDR: cidr}}
	if at, err := time.Parse(time.TimeOnly, created); err == nil {
		n.CreationTimestamp = metav1.NewTime(at)
	}
	if cidr != "" {
		n.Spec.PodCIDRs = strings.Split(cidr, ",")
	}
	for _, a := range addrs {
		kind, addr, ok := strings.Cut(a, "=")
		if !ok {
			kind, addr = string(corev1.NodeInternalIP), a
		}
		n.Status.Addresses = append(n.Status.Addresses, corev1.NodeAddress{Type: corev1.NodeAddressType(kind), Address: addr})
	}
	return n
}

func text(list []overlay.Peer) string {
	var out []string
	for _, p := range list {
		out = append(out, fmt.Sprintf("%s %s %v", p.Node, p.Address, p.Ranges))
	}
	return strings.Join(out, "; ")
}

// asPeers is how the machines of the cluster see the Nodes.
func asPeers(nodes []*corev1.Node) (out []*minik8s.Peer) {
	for _, n := range nodes {
		out = append(out, api.Peers.View.Shown(n).(*minik8s.Peer))
	}
	return out
}

func TestOf(t *testing.T) {
	for _, c := range []struct {
		name  string
		nodes []*corev1.Node
		want  string
	}{
		{"nobody", nil, ""},
		{"only this one", []*corev1.Node{node("own", "", "10.244.0.0/24", "192.0.2.1")}, ""},
		{"the oldest first, then by name", []*corev1.Node{node("c", "10:00:00", "10.244.3.0/24", "192.0.2.3"), node("b", "10:00:00", "10.244.2.0/24", "192.0.2.2"), node("d", "09:00:00", "10.244.4.0/24", "192.0.2.4")},
			"d 192.0.2.4 [10.244.4.0/24]; b 192.0.2.2 [10.244.2.0/24]; c 192.0.2.3 [10.244.3.0/24]"},
		{"no range yet", []*corev1.Node{node("a", "", "", "192.0.2.3")}, ""},
		{"no address yet", []*corev1.Node{node("a", "", "10.244.2.0/24")}, ""},
		{"only another address", []*corev1.Node{node("a", "", "10.244.2.0/24", "ExternalIP=192.0.2.3", "Hostname=a")}, ""},
		{"of both families", []*corev1.Node{node("a", "", "2001:db8::/64,10.244.2.0/24", "2001:db8::1", "192.0.2.3", "192.0.2.4")}, "a 192.0.2.3 [10.244.2.0/24]"},
		{"nonsense", []*corev1.Node{node("a", "", "everything", "here")}, ""},
	} {
		if got := text(Of(asPeers(c.nodes), "own")); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

// told is a Network that never succeeds.
type told struct{ lists chan []overlay.Peer }

func (n told) SetPeers(_ context.Context, list []overlay.Peer) error {
	n.lists <- list
	return errors.New("not now")
}

// What happens to Nodes is told within a moment, with the rights of a node; heartbeats are not.
func TestFollow(t *testing.T) {
	reg := registrytest.New(t)
	admin := local.New(reg, registry.System)
	put := func(n *corev1.Node) {
		t.Helper()
		if _, err := admin.Create(t.Context(), n, client.WriteOptions{}); err != nil {
			t.Fatal(err)
		}
		setStatus(t, admin, n.Name, func(now *corev1.Node) { now.Status = n.Status })
	}
	put(node("own", "", "10.244.1.0/24", "192.0.2.1"))
	put(node("n2", "", "10.244.2.0/24", "192.0.2.2"))
	n := told{make(chan []overlay.Peer, 100)}
	ctx, stop := context.WithCancel(t.Context())
	nodes := informer.New[*minik8s.Peer](local.New(reg, registry.NodeUser("own")), api.Peers, informer.Options{})
	ready := make(chan struct{})
	f := New(nodes, "own", n, slog.New(slog.DiscardHandler))
	var running sync.WaitGroup
	running.Go(func() { f.Run(ctx, func() { close(ready) }) })
	running.Go(func() {
		if err := nodes.Run(ctx, func() {}); err != nil {
			t.Error(err)
		}
	})
	defer running.Wait()
	defer stop()
	<-ready
	expect := func(want string) {
		t.Helper()
		select {
		case got := <-n.lists:
			if text(got) != want {
				t.Errorf("told %q, want %q", text(got), want)
			}
		case <-time.After(20 * time.Second):
			t.Fatalf("not told of %q", want)
		}
	}
	expect("n2 192.0.2.2 [10.244.2.0/24]")
	put(node("n3", "", "10.244.3.0/24", "192.0.2.3"))
	expect("n2 192.0.2.2 [10.244.2.0/24]; n3 192.0.2.3 [10.244.3.0/24]")
	for range 3 { // heartbeats, and what else is of no concern
		setStatus(t, admin, "n2", func(now *corev1.Node) {
			now.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue, LastHeartbeatTime: metav1.Now()}}
		})
	}
	setStatus(t, admin, "own", func(now *corev1.Node) { now.Status.Addresses = node("", "", "", "192.0.2.9").Status.Addresses })
	setStatus(t, admin, "n2", func(now *corev1.Node) { now.Status.Addresses = node("", "", "", "192.0.2.22").Status.Addresses })
	expect("n2 192.0.2.22 [10.244.2.0/24]; n3 192.0.2.3 [10.244.3.0/24]")
	if _, err := admin.Delete(t.Context(), client.Key{Kind: api.Nodes, Name: "n2"}, nil); err != nil {
		t.Fatal(err)
	}
	expect("n3 192.0.2.3 [10.244.3.0/24]")
}

func setStatus(t *testing.T, c client.Interface, name string, change func(*corev1.Node)) {
	t.Helper()
	obj, err := c.Get(t.Context(), client.Key{Kind: api.Nodes, Name: name})
	if err != nil {
		t.Fatal(err)
	}
	now := obj.(*corev1.Node).DeepCopy()
	change(now)
	if _, err := c.Update(t.Context(), now, client.WriteOptions{Subresource: "status"}); err != nil {
		t.Fatal(err)
	}
}
