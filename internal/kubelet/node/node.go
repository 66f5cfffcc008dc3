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

// Config configures a Manager. Name, DataDir, HeartbeatInterval, Now and Log must be set.
type Config struct {
	Name string
	IP   netip.Addr
	// Port is that of the kubelet's server; 0: it has none (hollow nodes).
	Port int32
	// DataDir is a directory on the disk that the Node reports.
	DataDir string
	// PodCIDR is the range of pod addresses that the runtime starts with.
	PodCIDR netip.Prefix
	MaxPods int
	// Version and RuntimeVersion are what nodeInfo says.
	Version, RuntimeVersion string
	Labels                  map[string]string
	// APIAddress is where this machine's API is reached, HOST:PORT; empty: it is no master, or a hidden one.
	APIAddress string
	Taints     []corev1.Taint
	// Capacity overrides what the machine has.
	Capacity corev1.ResourceList
	// Network is the pods' network; nil where there is none (hollow nodes).
	Network Network
	// Unavailable, which may be nil, is called when the API could not take a heartbeat, so that another master is asked.
	Unavailable func()
	// Heard, which may be nil, is called when the API has taken a heartbeat.
	Heard func()
	// Networks are those of the machine's links, as the Node's annotation has them.
	Networks string
	// HeartbeatInterval is the time between renewals of the Lease.
	HeartbeatInterval time.Duration
	Now               func() time.Time
	Log               *slog.Logger
}

// Network is what a Manager needs of the pods' network.
type Network interface {
	// SetPodCIDR makes pods get their addresses from the Node's range.
	SetPodCIDR(ctx context.Context, prefix netip.Prefix) error
	// Trouble names what in the host's packet filter stops pods' traffic, and what stops a part of it.
	Trouble() (stopped, partly []string)
}

// Runtime is what a Manager needs of the container runtime.
type Runtime interface {
	// ListImages returns the images.
	ListImages(ctx context.Context) ([]cri.Image, error)
}

// NoRuntime is the Runtime of a machine that runs no pods: a master without the role worker.
type NoRuntime struct{}

// ListImages implements Runtime.
func (NoRuntime) ListImages(context.Context) ([]cri.Image, error) { return nil, nil }

// Manager registers the Node object, and keeps it and its Lease up to date.
type Manager struct {
	cfg     Config
	client  client.Interface
	runtime Runtime
	events  *events.Recorder
	log     *slog.Logger
	host    hostInfo
	// imagesStale is set when the list of images may have changed.
	imagesStale atomic.Bool
	// shuttingDown is set while the machine shuts down.
	shuttingDown atomic.Bool

	mu     sync.Mutex
	node   *corev1.Node  // as last seen or written
	exists chan struct{} // closed once node is set
	cidr   netip.Prefix  // the range that the runtime uses
}

// New makes a Manager; it writes nothing before Register.
func New(cfg Config, c client.Interface, rt Runtime, rec *events.Recorder) *Manager {
	return &Manager{cfg: cfg, client: c, runtime: rt, events: rec, log: cfg.Log,
		host: readHostInfo(cfg.DataDir), cidr: cfg.PodCIDR, exists: make(chan struct{})}
}

// ImagesChanged has the Node's list of images updated with the next heartbeat.
func (n *Manager) ImagesChanged() { n.imagesStale.Store(true) }

// SetShuttingDown says in the Node, at once, whether the machine shuts down; the Node is not ready then.
func (n *Manager) SetShuttingDown(ctx context.Context, down bool) error {
	if n.shuttingDown.Swap(down) == down {
		return nil
	}
	what := "event"
	if !down {
		what = "cancellation"
	}
	node := n.known()
	if node == nil {
		return nil // it is not registered yet, and then says so
	}
	n.events.Event(node, corev1.EventTypeNormal, "NodeShutdown", "Shutdown manager detected shutdown %s", what)
	return n.writeStatus(ctx, node)
}

// Run renews the Lease, keeps the status up to date and registers the Node again if it is deleted, until ctx ends.
// Call it after Register.
func (n *Manager) Run(ctx context.Context) {
	n.events.Event(n.known(), corev1.EventTypeNormal, "Starting", "Starting kubelet.")
	lease := &leaseRenewer{n: n}
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

// remember stores the Node as it is now, and applies its range of pod addresses.
func (n *Manager) remember(ctx context.Context, node *corev1.Node) {
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
func (n *Manager) known() *corev1.Node {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.node
}
