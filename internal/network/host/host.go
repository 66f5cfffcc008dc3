package host

import (
	"cmp"
	"crypto/sha256"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"slices"
	"strconv"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// Protocol marks routes as ours, with a metric that is the daemon's own: so they are found again after a restart.
// Routes of the host's administrator, which have no metric, come before them.
const Protocol = netlink.RouteProtocol(109)

// Gateway is the next hop of pods' default route, which is an address of the host's lo.
var Gateway = netip.AddrFrom4([4]byte{169, 254, 1, 1})

// Resolver is the address of the link to which systemd-resolved ties a server. Nobody sends to it.
var Resolver = netip.AddrFrom4([4]byte{169, 254, 1, 2})

// Host is the network namespace of the process.
type Host struct {
	*netlink.Handle
	ns        *os.File
	owner     string // four digits
	stateFile string
}

// Open opens the process's network namespace for a daemon. owner distinguishes two daemons in one namespace. stateFile
// is where settings are saved before they are changed; empty: they are not saved.
func Open(owner, stateFile string) (*Host, error) {
	h := &Host{owner: fmt.Sprintf("%x", sha256.Sum256([]byte(owner)))[:4], stateFile: stateFile}
	var err error
	if h.ns, err = os.Open("/proc/self/ns/net"); err != nil {
		return nil, fmt.Errorf("network: %w", err)
	}
	if h.Handle, err = netlink.NewHandle(unix.NETLINK_ROUTE, unix.NETLINK_NETFILTER); err != nil {
		h.ns.Close()
		return nil, fmt.Errorf("network: netlink: %w", err)
	}
	return h, nil
}

// Close closes the handles. What was made stays.
func (h *Host) Close() error {
	h.Handle.Close()
	return h.ns.Close()
}

// Fd is the descriptor of the namespace, for links whose other end is in it.
func (h *Host) Fd() netlink.NsFd { return netlink.NsFd(h.ns.Fd()) }

// Owner is four digits made from the owner.
func (h *Host) Owner() string { return h.owner }

// LinkPrefix is the prefix of the names of this daemon's links.
func (h *Host) LinkPrefix() string { return "mk" + h.owner }

// Metric is that of this daemon's marked routes.
func (h *Host) Metric() int {
	digits, err := strconv.ParseUint(h.owner, 16, 16)
	if err != nil {
		panic(err) // they are hexadecimal
	}
	return 1<<16 + int(digits)
}

// OwnRoutes are this daemon's marked routes.
func (h *Host) OwnRoutes() ([]netlink.Route, error) {
	list, err := Dump(func() ([]netlink.Route, error) {
		return h.RouteListFiltered(netlink.FAMILY_V4, &netlink.Route{Protocol: Protocol}, netlink.RT_FILTER_PROTOCOL)
	})
	if err != nil {
		return nil, fmt.Errorf("network: routes: %w", err)
	}
	return slices.DeleteFunc(list, func(r netlink.Route) bool { return r.Dst == nil || r.Priority != h.Metric() }), nil
}

// DefaultLink is the default route's link; nil if there is none.
func (h *Host) DefaultLink() netlink.Link {
	routes, err := Dump(func() ([]netlink.Route, error) { return h.RouteList(nil, netlink.FAMILY_V4) })
	if err != nil {
		return nil
	}
	for _, r := range routes {
		if r.Dst != nil && !r.Dst.IP.IsUnspecified() {
			continue
		}
		if link, err := h.LinkByIndex(r.LinkIndex); err == nil {
			return link
		}
	}
	return nil
}

// DefaultMTU is the MTU of the default route's link; 0 if there is none.
func (h *Host) DefaultMTU() int {
	if link := h.DefaultLink(); link != nil {
		return link.Attrs().MTU
	}
	return 0
}

// DefaultName is the name of the default route's link; empty if there is none.
func (h *Host) DefaultName() string {
	if link := h.DefaultLink(); link != nil {
		return link.Attrs().Name
	}
	return ""
}

// Addrs are the IPv4 addresses by which others may reach the host, those of the default route's link first.
func (h *Host) Addrs() []netip.Addr {
	list, err := Dump(func() ([]netlink.Addr, error) { return h.AddrList(nil, netlink.FAMILY_V4) })
	if err != nil {
		return nil
	}
	first := 0
	if link := h.DefaultLink(); link != nil {
		first = link.Attrs().Index
	}
	other := func(a netlink.Addr) int {
		if a.LinkIndex == first {
			return 0
		}
		return 1
	}
	slices.SortStableFunc(list, func(a, b netlink.Addr) int { return cmp.Compare(other(a), other(b)) })
	var out []netip.Addr
	for _, a := range list {
		if ip, ok := netip.AddrFromSlice(a.IP.To4()); ok && ip.IsGlobalUnicast() && a.Scope < int(netlink.SCOPE_HOST) {
			out = append(out, ip)
		}
	}
	return out
}

// DeleteRoute removes a route; one that is not there is no error.
func (h *Host) DeleteRoute(r *netlink.Route) error {
	if err := h.RouteDel(r); err != nil && !errors.Is(err, unix.ESRCH) {
		return err
	}
	return nil
}
