package network

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"slices"
	"sync"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"minik8s/internal/network/host"
	"minik8s/internal/network/hostfilter"
	"minik8s/internal/network/hostports"
	"minik8s/internal/network/ipam"
	"minik8s/internal/network/overlay"
	"minik8s/internal/nft"
)

// hostMAC is the hardware address of every veth's host end. Each is on a link of its own, so they may be equal.
var hostMAC = net.HardwareAddr{0xee, 0xee, 0xee, 0xee, 0xee, 0xee}

// Config is what a Network is made from.
type Config struct {
	// PodCIDR is this node's range of pod addresses; it may be set later by SetPodCIDR. The range of an earlier run,
	// which the kernel's routes show, takes its place.
	PodCIDR netip.Prefix
	// Owner distinguishes two daemons in one network namespace, such as their data directory.
	Owner string
	// NoPods is for a node that runs none: its host reaches the pods of other nodes, and nothing is done that only pods need.
	NoPods bool
	// NodePorts are TCP ports of the node that pods may reach although the host filters its input: the API's.
	NodePorts []uint16
	// StateFile is where the host's settings are saved before they are changed. Empty: they are not saved, and
	// Teardown does not restore them.
	StateFile string
	// NodeIP is the address at which other nodes reach this one, and from which its tunnel sends. It may be none of
	// the host's, as behind a NAT; then the kernel chooses.
	NodeIP netip.Addr
	// Direct routes to peers on the same link without a tunnel. All nodes must have the same setting.
	Direct bool
	// VXLANPort is the UDP port of the tunnel, the same on all nodes; 0: overlay.DefaultPort.
	VXLANPort uint16
	// Unwatched is the prefix of the names of tables that another part of ours keeps and changes often: their changes
	// are no reason to compare. Empty: there are none.
	Unwatched string
	Log       *slog.Logger
}

// Network is the pods' network of this node. Its methods are safe for concurrent use.
type Network struct {
	cfg     Config
	pool    ipam.Pool
	host    *host.Host
	nf      nft.Ruleset
	flows   flows
	changed chan struct{} // wakes Keep

	mu      sync.Mutex
	mtu     int        // of the link with the default route; 0: the kernel's own choice
	source  netip.Addr // of what the host sends to pods while it has no address itself; else invalid: the kernel's choice
	ready   bool
	held    netip.Prefix                    // the range of the unreachable route
	ports   map[string]*hostports.Published // host ports, by sandbox
	pods    map[string]netip.Addr           // the connected sandboxes, by id
	bare    netip.Prefix                    // the range for which Prepare has put the rules in place, without pods
	filters *hostfilter.Filters
	overlay *overlay.Overlay
	tabled  []nft.Element           // the elements for peers that our table has
	asked   map[string][]netip.Addr // what Serve was told, by purpose
	served  map[string][]netip.Addr // those of them that are nobody else's
}

// New makes the network of the process's network namespace, which is "the host". Nothing is changed before Setup.
func New(cfg Config) (*Network, error) {
	if cfg.Log == nil {
		cfg.Log = slog.Default()
	}
	n := &Network{cfg: cfg, ports: map[string]*hostports.Published{}, pods: map[string]netip.Addr{}, asked: map[string][]netip.Addr{}, served: map[string][]netip.Addr{}, nf: nft.NewKernel(), changed: make(chan struct{}, 1)}
	if cfg.PodCIDR.IsValid() {
		if err := n.pool.SetPrefix(cfg.PodCIDR); err != nil {
			return nil, err
		}
	}
	var err error
	if n.host, err = host.Open(cfg.Owner, cfg.StateFile); err != nil {
		return nil, err
	}
	n.flows.cut = cutFlows(n.host.Handle)
	n.filters = hostfilter.New(n.nf, ours, n.TableName(), cfg.Log)
	n.overlay = overlay.New(n.host, overlay.Config{NodeIP: cfg.NodeIP, Direct: cfg.Direct, Port: cfg.VXLANPort, Log: cfg.Log}, peersFilter{n})
	// The range of an earlier run is the Node's, whatever is asked for; and the masters may be away.
	if found, err := n.findRange(); err == nil && found.IsValid() {
		n.held = found
		if err := n.pool.SetPrefix(found); err != nil {
			return nil, errors.Join(err, n.Close())
		}
	}
	return n, nil
}

// Close closes the netlink handles and the host ports on loopback. Pods stay connected.
func (n *Network) Close() error {
	n.flows.stop()
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, p := range n.ports {
		p.Close()
	}
	return n.host.Close()
}

// SetPodCIDR sets the node's range. Pods that have an address outside it keep it until their sandboxes are made anew.
func (n *Network) SetPodCIDR(ctx context.Context, prefix netip.Prefix) error {
	if n.pool.Prefix() == prefix.Masked() {
		return nil
	}
	if err := n.pool.SetPrefix(prefix); err != nil {
		return fmt.Errorf("network: %w", err)
	}
	return n.Setup(ctx)
}

// PodCIDR is the node's range of pod addresses; invalid until it is known.
func (n *Network) PodCIDR() netip.Prefix { return n.pool.Prefix() }

// Ready reports whether pods can be connected.
func (n *Network) Ready() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.ready
}

// Setup makes what all pods share: forwarding, the gateway's address and the rules. It is idempotent, and does
// nothing while the node's range is not known. Call it after Restore and AddHostPorts for the pods of an earlier run,
// so that their host ports are in the table from the start.
func (n *Network) Setup(ctx context.Context) error {
	pods := n.pool.Prefix()
	if !pods.IsValid() {
		return nil
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if err := n.prepare(pods); err != nil {
		return err
	}
	if n.bare != pods || len(n.pods) > 0 || len(n.ports) > 0 {
		if err := n.apply(); err != nil {
			return err
		}
	}
	n.bare, n.ready = netip.Prefix{}, true
	if _, err := n.overlay.Sync(pods); err != nil { // pods of this node work without; Keep tries again
		n.cfg.Log.Warn("the ways to other nodes' pods are not complete", "error", err)
		n.poke()
	}
	if _, err := n.filters.Open(n.traffic()); err != nil {
		n.cfg.Log.Warn("the host's packet filter could not be read", "error", err)
	}
	return nil
}

// Prepare does of Setup what can be done before the pods of an earlier run are known. It is optional: a transaction of
// the packet filter takes some 10 ms, and the start need not wait for it. Rules that are there already, with the pods of
// that run, stay until Setup.
func (n *Network) Prepare(ctx context.Context) error {
	pods := n.pool.Prefix()
	if !pods.IsValid() || ctx.Err() != nil {
		return ctx.Err()
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if err := n.prepare(pods); err != nil {
		return err
	}
	there, err := n.nf.Chains(n.TableName())
	if err != nil || len(there) > 0 || len(n.pods) > 0 {
		return err
	}
	if err := n.apply(); err != nil {
		return err
	}
	n.bare = pods
	return nil
}

// apply writes the table as a whole.
func (n *Network) apply() error {
	if err := n.nf.Apply(n.desired()); err != nil {
		return fmt.Errorf("network: %w", err)
	}
	n.tabled = n.overlay.Elements()
	return nil
}

func (n *Network) prepare(pods netip.Prefix) error {
	if err := n.undoRouteLocalnet(); err != nil {
		return fmt.Errorf("network: %w", err)
	}
	if err := n.setUpShared(pods); err != nil {
		return err
	}
	if err := n.chooseSource(); err != nil {
		return err
	}
	n.mtu = n.host.DefaultMTU()
	if !n.cfg.Direct { // also without peers: a pod's link keeps its MTU, and they may come later
		n.mtu = n.overlay.MTU()
	}
	return n.overlay.Adopt(pods)
}

// addUnreachableRoute adds an unreachable route for the node's range of pod addresses. The pods' own /32 routes are
// more specific; without it a packet to an address that no pod has would leave by the default route.
func (n *Network) addUnreachableRoute(pods netip.Prefix) error {
	if n.held.IsValid() && n.held != pods {
		if err := n.freeRange(n.held); err != nil {
			return err
		}
	}
	if err := n.host.RouteReplace(n.unreachable(pods)); err != nil {
		return fmt.Errorf("network: unreachable route for %s: %w", pods, err)
	}
	old := n.unreachable(pods) // as earlier versions made it, without a mark
	old.Protocol, old.Priority = unix.RTPROT_STATIC, 0
	if err := n.host.DeleteRoute(old); err != nil {
		return fmt.Errorf("network: unreachable route for %s: %w", pods, err)
	}
	n.held = pods
	return nil
}

func (n *Network) freeRange(pods netip.Prefix) error {
	if err := n.host.DeleteRoute(n.unreachable(pods)); err != nil {
		return fmt.Errorf("network: unreachable route for %s: %w", pods, err)
	}
	return nil
}

func (n *Network) unreachable(p netip.Prefix) *netlink.Route {
	return &netlink.Route{Dst: host.Net(p), Type: unix.RTN_UNREACHABLE, Protocol: host.Protocol, Priority: n.host.Metric()}
}

// findRange finds the range of an earlier run, by its route; invalid if there is none.
func (n *Network) findRange() (netip.Prefix, error) {
	list, err := n.host.OwnRoutes()
	for _, r := range list {
		if r.Type == unix.RTN_UNREACHABLE {
			return host.Prefix(r.Dst), nil
		}
	}
	return netip.Prefix{}, err
}

// Teardown removes our table, our rules in other filters, the ways to peers, the gateway's address and the route, and restores the
// host's settings: for uninstalling, and for tests.
func (n *Network) Teardown(ctx context.Context) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.ready = false
	var errs []error
	errs = append(errs, n.overlay.Adopt(n.pool.Prefix())) // what an earlier run has opened for them is closed, too
	errs = append(errs, n.filters.Close(n.traffic())...)
	errs = append(errs, n.overlay.Remove(), n.serveNothing(), n.DropResolver())
	if pods := n.pool.Prefix(); pods.IsValid() {
		errs = append(errs, n.freeRange(pods))
	}
	errs = append(errs, n.undoRouteLocalnet(), n.nf.Delete(n.TableName()))
	others, err := n.nf.Chains(tables)
	if err == nil { // another daemon on this host needs the settings, and its pods the gateway
		err = n.host.Forget(len(others) == 0)
	}
	if len(others) == 0 {
		err = errors.Join(err, n.removeGateway())
	}
	return errors.Join(append(errs, err)...)
}

func (n *Network) removeGateway() error {
	lo, err := n.host.LinkByName("lo")
	if err != nil {
		return nil //nolint:nilerr // a namespace without lo has no such address
	}
	err = n.host.AddrDel(lo, &netlink.Addr{IPNet: host.Single(host.Gateway), Scope: int(netlink.SCOPE_LINK)})
	if errors.Is(err, unix.EADDRNOTAVAIL) {
		return nil
	}
	return err
}

// undoRouteLocalnet undoes what earlier versions did: they set route_localnet for the whole host, with a chain named
// guard to protect loopback addresses.
func (n *Network) undoRouteLocalnet() error {
	have, err := n.nf.Chains(n.TableName())
	if err != nil || !slices.Contains(have[n.TableName()], "guard") {
		return err
	}
	return host.SetSysctl("net/ipv4/conf/all/route_localnet", "0")
}

// Owner are the four digits by which this daemon's things on the host are known, and LinkPrefix is what the names of its
// pods' links begin with.
func (n *Network) Owner() string      { return n.host.Owner() }
func (n *Network) LinkPrefix() string { return n.host.LinkPrefix() }

// HostAddrs are the IPv4 addresses by which others may reach the host, those of the default route's link first.
func (n *Network) HostAddrs() []netip.Addr { return n.host.Addrs() }
