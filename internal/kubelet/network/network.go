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
)

// Gateway is the next hop pods see.
var Gateway = netip.AddrFrom4([4]byte{169, 254, 1, 1})

// hostMAC is the hardware address of every veth's host end. They never share a wire.
var hostMAC = net.HardwareAddr{0xee, 0xee, 0xee, 0xee, 0xee, 0xee}

// Config is what a Network is made from.
type Config struct {
	// PodCIDR is this node's range; it may be given later by SetPodCIDR.
	PodCIDR netip.Prefix
	// ClusterCIDR is the range of all nodes' pods. Invalid: PodCIDR.
	ClusterCIDR netip.Prefix
	// Owner tells apart two daemons in one network namespace; their data directory will do.
	Owner string
	Log   *slog.Logger
}

// Network is the pods' network of this node. Its methods may be called side by side.
type Network struct {
	cfg    Config
	owner  string // four digits made from Config.Owner
	pool   pool
	hostNS *os.File
	host   *netlink.Handle

	mu    sync.Mutex
	mtu   int // of the link with the default route; 0: the kernel's own choice
	ready bool
	ports map[string][]element // by owner
}

// New takes the network namespace of the process as the host's. Nothing is changed before Setup.
func New(cfg Config) (*Network, error) {
	if cfg.Log == nil {
		cfg.Log = slog.Default()
	}
	n := &Network{cfg: cfg, ports: map[string][]element{}}
	n.owner = fmt.Sprintf("%x", sha256.Sum256([]byte(cfg.Owner)))[:4]
	if cfg.PodCIDR.IsValid() {
		if err := n.pool.setPrefix(cfg.PodCIDR); err != nil {
			return nil, err
		}
	}
	var err error
	if n.hostNS, err = os.Open("/proc/self/ns/net"); err != nil {
		return nil, fmt.Errorf("network: %w", err)
	}
	if n.host, err = netlink.NewHandle(unix.NETLINK_ROUTE); err != nil {
		n.hostNS.Close()
		return nil, fmt.Errorf("network: netlink: %w", err)
	}
	return n, nil
}

// Close lets go of the handles. Pods stay connected.
func (n *Network) Close() error {
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
// idempotent, and does nothing while the node's range is not known.
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
	for _, s := range []struct{ key, value string }{
		{"net/ipv4/ip_forward", "1"},
		// Connections from 127.0.0.1 to a host port leave by a veth; the guard chain drops those of others.
		{"net/ipv4/conf/all/route_localnet", "1"},
	} {
		if err := setSysctl(s.key, s.value); err != nil {
			return fmt.Errorf("network: %w", err)
		}
	}
	lo, err := n.host.LinkByName("lo")
	if err != nil {
		return fmt.Errorf("network: lo: %w", err)
	}
	if err := n.host.LinkSetUp(lo); err != nil {
		return fmt.Errorf("network: lo: %w", err)
	}
	gw := &netlink.Addr{IPNet: slash32(Gateway), Scope: int(netlink.SCOPE_LINK)}
	if err := n.host.AddrReplace(lo, gw); err != nil {
		return fmt.Errorf("network: gateway address: %w", err)
	}
	n.mtu = n.defaultMTU()
	cluster := n.cfg.ClusterCIDR
	if !cluster.IsValid() {
		cluster = pods
	}
	if err := n.applyRules(pods, cluster); err != nil {
		return fmt.Errorf("network: nftables: %w", err)
	}
	n.ready = true
	return nil
}

// Teardown removes the rules and the gateway's address: for uninstalling, and for tests.
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
	return errors.Join(append(errs, n.deleteRules())...)
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

// setSysctl writes a setting of the namespace the calling thread is in.
func setSysctl(key, value string) error {
	path := "/proc/sys/" + key
	if have, err := os.ReadFile(path); err == nil && len(have) > 0 && string(have[:len(have)-1]) == value {
		return nil
	}
	if err := os.WriteFile(path, []byte(value), 0); err != nil {
		return fmt.Errorf("sysctl %s=%s: %w", key, value, err)
	}
	return nil
}

func slash32(a netip.Addr) *net.IPNet {
	return &net.IPNet{IP: a.AsSlice(), Mask: net.CIDRMask(32, 32)}
}
