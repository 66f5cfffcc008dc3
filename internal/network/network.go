package network

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"slices"
	"sync"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"minik8s/internal/nft"
)

// Gateway is the next hop pods see.
var Gateway = netip.AddrFrom4([4]byte{169, 254, 1, 1})

// hostMAC is the hardware address of every veth's host end. They never share a wire.
var hostMAC = net.HardwareAddr{0xee, 0xee, 0xee, 0xee, 0xee, 0xee}

// Config is what a Network is made from.
type Config struct {
	// PodCIDR is this node's range; it may be given later by SetPodCIDR.
	PodCIDR netip.Prefix
	// Owner tells apart two daemons in one network namespace; their data directory will do.
	Owner string
	// NodePorts are the TCP ports of the node that pods reach where the host filters what it receives: the
	// API's.
	NodePorts []uint16
	// StateFile is where settings of the host are written down before they are changed. Empty: nowhere, and
	// then they are not given back.
	StateFile string
	Log       *slog.Logger
}

// Network is the pods' network of this node. Its methods may be called side by side.
type Network struct {
	cfg    Config
	owner  string // four digits made from Config.Owner
	pool   pool
	hostNS *os.File
	host   *netlink.Handle
	nf     nft.Ruleset
	flows  flows

	firewalld, legacy firewallClient
	legacyInUse       func() bool // whether the older iptables has a filter table here

	mu      sync.Mutex
	mtu     int // of the link with the default route; 0: the kernel's own choice
	ready   bool
	held    netip.Prefix          // the range the unreachable route is for
	ports   map[string]*published // host ports, by sandbox
	pods    map[string]netip.Addr // the connected sandboxes, by id
	trouble Trouble               // what of the filters of others is in the way
}

// New takes the network namespace of the process as the host's. Nothing is changed before Setup.
func New(cfg Config) (*Network, error) {
	if cfg.Log == nil {
		cfg.Log = slog.Default()
	}
	n := &Network{cfg: cfg, ports: map[string]*published{}, pods: map[string]netip.Addr{}, nf: nft.NewKernel(), legacyInUse: legacyInUse}
	n.owner = fmt.Sprintf("%x", sha256.Sum256([]byte(cfg.Owner)))[:4]
	n.firewalld, n.legacy = firewalld{runTool}, legacy{runTool, legacyInUse, n.TableName()}
	if cfg.PodCIDR.IsValid() {
		if err := n.pool.setPrefix(cfg.PodCIDR); err != nil {
			return nil, err
		}
	}
	var err error
	if n.hostNS, err = os.Open("/proc/self/ns/net"); err != nil {
		return nil, fmt.Errorf("network: %w", err)
	}
	if n.host, err = netlink.NewHandle(unix.NETLINK_ROUTE, unix.NETLINK_NETFILTER); err != nil {
		n.hostNS.Close()
		return nil, fmt.Errorf("network: netlink: %w", err)
	}
	n.flows.cut = cutFlows(n.host)
	return n, nil
}

// Close lets go of the handles, and of host ports on loopback. Pods stay connected.
func (n *Network) Close() error {
	n.flows.stop()
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, p := range n.ports {
		p.close()
	}
	n.host.Close()
	return n.hostNS.Close()
}

// SetPodCIDR sets the node's range. Pods that have an address outside it keep it.
func (n *Network) SetPodCIDR(ctx context.Context, prefix netip.Prefix) error {
	if n.pool.current() == prefix.Masked() {
		return nil
	}
	if err := n.pool.setPrefix(prefix); err != nil {
		return fmt.Errorf("network: %w", err)
	}
	return n.Setup(ctx)
}

// PodCIDR is the node's range; invalid as long as it is not known.
func (n *Network) PodCIDR() netip.Prefix { return n.pool.current() }

// Ready says whether pods can be connected.
func (n *Network) Ready() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.ready
}

// Setup puts in place what all pods share: forwarding, the gateway's address and the rules. It is
// idempotent, and does nothing while the node's range is not known. Call it after Restore and AddHostPorts
// have named the pods of an earlier run: their host ports are then in the table from the first moment.
func (n *Network) Setup(ctx context.Context) error {
	pods := n.pool.current()
	if !pods.IsValid() {
		return nil
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if err := n.healLocalnet(); err != nil {
		return fmt.Errorf("network: %w", err)
	}
	if err := n.putShared(pods); err != nil {
		return err
	}
	n.mtu = n.defaultMTU()
	if err := n.nf.Apply(n.desired()); err != nil {
		return fmt.Errorf("network: %w", err)
	}
	n.ready = true
	if _, err := n.checkFirewalls(); err != nil {
		n.cfg.Log.Warn("the host's packet filter could not be read", "error", err)
	}
	return nil
}

// holdRange adds an unreachable route for the node's range. The pods' own /32 routes are more specific; without
// it a packet to an address that no pod has would leave by the default route.
func (n *Network) holdRange(pods netip.Prefix) error {
	if n.held.IsValid() && n.held != pods {
		if err := n.freeRange(n.held); err != nil {
			return err
		}
	}
	if err := n.host.RouteReplace(unreachable(pods)); err != nil {
		return fmt.Errorf("network: unreachable route for %s: %w", pods, err)
	}
	n.held = pods
	return nil
}

func (n *Network) freeRange(pods netip.Prefix) error {
	if err := n.host.RouteDel(unreachable(pods)); err != nil && !errors.Is(err, unix.ESRCH) {
		return fmt.Errorf("network: unreachable route for %s: %w", pods, err)
	}
	return nil
}

func unreachable(p netip.Prefix) *netlink.Route {
	return &netlink.Route{Dst: &net.IPNet{IP: p.Addr().AsSlice(), Mask: net.CIDRMask(p.Bits(), 32)}, Type: unix.RTN_UNREACHABLE, Protocol: unix.RTPROT_STATIC}
}

// Teardown removes the rules, here and in the filters of others, the gateway's address and the route, and
// gives back the settings of the host: for uninstalling, and for tests.
func (n *Network) Teardown(ctx context.Context) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.ready = false
	var errs []error
	if lo, err := n.host.LinkByName("lo"); err == nil {
		err := n.host.AddrDel(lo, &netlink.Addr{IPNet: slash32(Gateway), Scope: int(netlink.SCOPE_LINK)})
		if err != nil && !errors.Is(err, unix.EADDRNOTAVAIL) {
			errs = append(errs, err)
		}
	}
	errs = append(errs, n.closeFirewalls()...)
	if pods := n.pool.current(); pods.IsValid() {
		errs = append(errs, n.freeRange(pods))
	}
	errs = append(errs, n.healLocalnet(), n.nf.Delete(n.TableName()))
	return errors.Join(append(errs, n.giveBackSysctls())...)
}

// defaultMTU is that of the link the default route leaves by; 0 if there is none.
func (n *Network) defaultMTU() int {
	if link := n.defaultLink(); link != nil {
		return link.Attrs().MTU
	}
	return 0
}

// defaultLink is the link the default route leaves by; nil if there is none.
func (n *Network) defaultLink() netlink.Link {
	routes, err := dump(func() ([]netlink.Route, error) { return n.host.RouteList(nil, netlink.FAMILY_V4) })
	if err != nil {
		return nil
	}
	for _, r := range routes {
		if r.Dst != nil && !r.Dst.IP.IsUnspecified() {
			continue
		}
		if link, err := n.host.LinkByIndex(r.LinkIndex); err == nil {
			return link
		}
	}
	return nil
}

// HostAddrs are the host's global IPv4 addresses, those of the link of the default route first.
func (n *Network) HostAddrs() []netip.Addr {
	list, err := dump(func() ([]netlink.Addr, error) { return n.host.AddrList(nil, netlink.FAMILY_V4) })
	if err != nil {
		return nil
	}
	first := 0
	if link := n.defaultLink(); link != nil {
		first = link.Attrs().Index
	}
	slices.SortStableFunc(list, func(a, b netlink.Addr) int {
		switch {
		case a.LinkIndex == b.LinkIndex:
			return 0
		case a.LinkIndex == first:
			return -1
		case b.LinkIndex == first:
			return 1
		}
		return 0
	})
	var out []netip.Addr
	for _, a := range list {
		if ip, ok := netip.AddrFromSlice(a.IP.To4()); ok && ip.IsGlobalUnicast() {
			out = append(out, ip)
		}
	}
	return out
}

func slash32(a netip.Addr) *net.IPNet {
	return &net.IPNet{IP: a.AsSlice(), Mask: net.CIDRMask(32, 32)}
}
