package peers

import (
	"cmp"
	"context"
	"log/slog"
	"net/netip"
	"reflect"
	"slices"

	"minik8s/internal/api/minik8s"
	"minik8s/internal/informer"
	"minik8s/internal/network/overlay"
)

// Network is what is told of the peers. After an error it tries again by itself.
type Network interface {
	SetPeers(ctx context.Context, list []overlay.Peer) error
}

// Follower tells the network of the peers.
type Follower struct {
	machines *informer.Informer[*minik8s.Peer]
	own      string
	network  Network
	log      *slog.Logger
	changed  <-chan struct{}
}

// New makes a Follower that knows the machines from an informer, which does not run yet. own is this machine's.
func New(machines *informer.Informer[*minik8s.Peer], own string, n Network, log *slog.Logger) *Follower {
	return &Follower{machines: machines, own: own, network: n, log: log,
		changed: machines.Signal(func(old, now *minik8s.Peer) bool { return !same(old, now, own) })}
}

// Run tells the network of the peers until ctx ends, while the informer runs. ready is called when it has been told of
// those that existed at the start.
func (f *Follower) Run(ctx context.Context, ready func()) {
	var last []overlay.Peer
	for first := true; ; first = false {
		select {
		case <-f.changed:
		case <-ctx.Done():
			return
		}
		list := Of(f.machines.List(), f.own)
		if first || !reflect.DeepEqual(list, last) {
			if err := f.network.SetPeers(ctx, list); err != nil && ctx.Err() == nil {
				f.log.Warn("the ways to other nodes' pods are not complete, trying again", "error", err)
			}
			last = list
		}
		if first {
			ready()
		}
	}
}

// Of are the peers of a node: the others that have an IPv4 address and range. The oldest are first, because the
// network gives precedence to them where two contradict each other. It is pure.
func Of(nodes []*minik8s.Peer, own string) []overlay.Peer {
	nodes = slices.SortedFunc(slices.Values(nodes), func(a, b *minik8s.Peer) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
	})
	var out []overlay.Peer
	for _, node := range nodes {
		if p, ok := peerOf(node); ok && node.Name != own {
			out = append(out, p)
		}
	}
	return out
}

// peerOf is a machine as a peer of the network; false if it cannot be reached yet.
func peerOf(node *minik8s.Peer) (overlay.Peer, bool) {
	p := overlay.Peer{Node: node.Name}
	for _, a := range node.Spec.Addresses {
		if addr, err := netip.ParseAddr(a); err == nil && addr.Is4() {
			p.Address = addr
			break
		}
	}
	for _, r := range node.Spec.PodCIDRs {
		if prefix, err := netip.ParsePrefix(r); err == nil && prefix.Addr().Is4() {
			p.Ranges = append(p.Ranges, prefix.Masked())
		}
	}
	return p, p.Address.IsValid() && len(p.Ranges) > 0
}

// same reports whether a change of a machine is none for the network.
func same(old, now *minik8s.Peer, own string) bool {
	if old == nil || now == nil {
		return (old == nil || old.Name == own) && (now == nil || now.Name == own)
	}
	a, aok := peerOf(old)
	b, bok := peerOf(now)
	return now.Name == own || aok == bok && reflect.DeepEqual(a, b)
}
