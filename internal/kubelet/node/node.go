package node

import (
	"context"
	"log/slog"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"

	"minik8s/internal/client"
	"minik8s/internal/events"
	"minik8s/internal/kubelet/cri"
)

// Config is what the kubelet knows of its node beforehand. Name, DataDir, HeartbeatInterval, Now and Log must be set.
type Config struct {
	Name string
	IP   netip.Addr
	// DataDir is on the disk that the node reports.
	DataDir string
	// PodCIDR is the range of the pods' addresses that the runtime starts with.
	PodCIDR netip.Prefix
	MaxPods int
	// Version and RuntimeVersion are what nodeInfo says.
	Version, RuntimeVersion string
	Labels                  map[string]string
	Taints                  []corev1.Taint
	// Capacity overrides what the machine has.
	Capacity corev1.ResourceList
	// Network is the pods' network; nil where there is none (hollow nodes).
	Network Network
	// HeartbeatInterval is between renewals of the Lease.
	HeartbeatInterval time.Duration
	Now               func() time.Time
	Log               *slog.Logger
}

// Network is what the Node has to do with the pods' network.
type Network interface {
	// SetPodCIDR has pods take their addresses from the range that the Node names.
	SetPodCIDR(ctx context.Context, prefix netip.Prefix) error
	// Trouble names what of the host's packet filter stops pods' traffic, and what stops a part of it.
	Trouble() (stopped, partly []string)
}

// Keeper keeps the Node object and its Lease.
type Keeper struct {
	cfg     Config
	client  client.Interface
	runtime cri.Runtime
	events  *events.Recorder
	log     *slog.Logger
	host    hostInfo
	// imagesStale is set when the list of images may have changed.
	imagesStale atomic.Bool

	mu     sync.Mutex
	node   *corev1.Node  // as last seen or written
	exists chan struct{} // closed once node is set
	cidr   netip.Prefix  // the range that the runtime uses
}

// New makes a keeper; it writes nothing before Register.
func New(cfg Config, c client.Interface, rt cri.Runtime, rec *events.Recorder) *Keeper {
	return &Keeper{cfg: cfg, client: c, runtime: rt, events: rec, log: cfg.Log,
		host: readHostInfo(cfg.DataDir), cidr: cfg.PodCIDR, exists: make(chan struct{})}
}

// ImagesChanged says that images have come or gone, so that the Node's list is renewed with the next heartbeat.
func (n *Keeper) ImagesChanged() { n.imagesStale.Store(true) }

// Run renews the Lease, keeps the status true and registers the Node again if it is deleted, until ctx ends. It
// is called after Register.
func (n *Keeper) Run(ctx context.Context) {
	n.events.Event(n.known(), corev1.EventTypeNormal, "Starting", "Starting kubelet.")
	lease := &leaseKeeper{n: n}
	var watching sync.WaitGroup
	defer watching.Wait()
	watching.Go(func() { n.watch(ctx) })
	lease.renew(ctx, n.known())
	tick := time.NewTicker(n.cfg.HeartbeatInterval)
	defer tick.Stop()
	written := n.cfg.Now()
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		node := n.known()
		lease.renew(ctx, node)
		if n.cfg.Now().Sub(written) < statusEvery && !n.statusChanged(ctx, node) {
			continue
		}
		if err := n.writeStatus(ctx, node); err != nil && ctx.Err() == nil {
			n.log.Warn("node status not written", "error", err)
			continue
		}
		written = n.cfg.Now()
	}
}

// remember keeps the Node as it is now, and has the runtime give pods addresses from the range that it names.
func (n *Keeper) remember(ctx context.Context, node *corev1.Node) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.node == nil {
		close(n.exists)
	}
	n.node = node
	cidr, err := netip.ParsePrefix(node.Spec.PodCIDR)
	if err != nil || cidr == n.cidr {
		return
	}
	if n.cfg.Network != nil {
		if err := n.cfg.Network.SetPodCIDR(ctx, cidr); err != nil {
			n.log.Error("pods cannot get addresses from the range that the Node names", "range", cidr, "error", err)
			return
		}
	}
	n.cidr = cidr
}

// known is the Node as last seen or written; nil before that.
func (n *Keeper) known() *corev1.Node {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.node
}
