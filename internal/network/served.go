package network

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"minik8s/internal/network/host"
)

// maxLabel is the kernel's limit of an address' label, in bytes.
const maxLabel = unix.IFNAMSIZ - 1

// label marks the addresses on lo that the host has for one purpose.
func (n *Network) label(purpose string) string { return "lo:" + n.host.LinkPrefix() + purpose }

// Serve has the host have these addresses for a purpose, so that its own processes can answer there, and not those that it
// had for that purpose before. They are on lo, so no link's network has them and none is announced; they are of the scope
// host, so nothing is sent from them but answers. A purpose is a few letters. Keep brings back what somebody removes.
//
// An address that this host knows to be somebody else's, a router's for example, or another node's, stays theirs: the
// error says so, and the others are served. It is looked at again when nodes or the host's network change.
//
// The addresses outlive the daemon, also a kill -9; Teardown removes them.
func (n *Network) Serve(purpose string, addrs []netip.Addr) error {
	if len(n.label(purpose)) > maxLabel {
		return fmt.Errorf("network: %q is too long for a purpose", purpose)
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.asked[purpose] = slices.Clone(addrs)
	err := n.choose(purpose)
	_, serr := n.syncServed()
	return errors.Join(err, serr)
}

// choose has n.served be those of the addresses asked for that are nobody else's. The error names the others. n.mu is held.
func (n *Network) choose(purpose string) (err error) {
	addrs := n.asked[purpose]
	if len(addrs) == 0 {
		n.served[purpose] = nil
		return nil
	}
	around, err := n.host.Around() // if that is not known, they are taken for free
	var free []netip.Addr
	for _, a := range addrs {
		whose := n.overlay.PeerAt(a)
		if whose == "" {
			whose = around.Whose(a)
		}
		if whose != "" {
			err = errors.Join(err, fmt.Errorf("network: %s is %s, and stays so", a, whose))
			continue
		}
		free = append(free, a)
	}
	n.served[purpose] = free
	return err
}

// chooseAgain looks again at what was refused, and at what may have become another's. n.mu is held.
func (n *Network) chooseAgain() {
	for purpose := range n.asked {
		was := n.served[purpose]
		err := n.choose(purpose)
		if !slices.Equal(was, n.served[purpose]) {
			n.cfg.Log.Info("this host answers at other addresses than before", "now", n.served[purpose], "before", was, "refused", err)
		}
	}
}

// Served are the addresses that the host has for a purpose now, as this run or an earlier one has asked for.
func (n *Network) Served(purpose string) ([]netip.Addr, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	_, have, err := n.servedNow()
	return have[n.label(purpose)], err
}

// servedNow are the addresses that lo has for our purposes, by label.
func (n *Network) servedNow() (lo netlink.Link, out map[string][]netip.Addr, err error) {
	if lo, err = n.host.LinkByName("lo"); err != nil {
		return nil, nil, fmt.Errorf("network: lo: %w", err)
	}
	addrs, err := host.Dump(func() ([]netlink.Addr, error) { return n.host.AddrList(lo, netlink.FAMILY_V4) })
	if err != nil {
		return nil, nil, fmt.Errorf("network: addresses: %w", err)
	}
	out = map[string][]netip.Addr{}
	for _, a := range addrs {
		if addr, ok := netip.AddrFromSlice(a.IP.To4()); ok && strings.HasPrefix(a.Label, n.label("")) {
			out[a.Label] = append(out[a.Label], addr)
		}
	}
	return lo, out, nil
}

// syncServed makes lo have what Serve was told, and reports whether it had not. What an earlier run has left for a purpose
// that nobody has named yet stays.
func (n *Network) syncServed() (changed bool, err error) {
	if len(n.served) == 0 {
		return false, nil
	}
	lo, have, err := n.servedNow()
	if err != nil {
		return false, err
	}
	if lo.Attrs().Flags&net.FlagUp == 0 {
		if err := n.host.LinkSetUp(lo); err != nil {
			return false, fmt.Errorf("network: lo: %w", err)
		}
	}
	for purpose, want := range n.served {
		label := n.label(purpose)
		for _, a := range have[label] {
			if !slices.Contains(want, a) {
				changed = true
				err = errors.Join(err, n.unserve(lo, label, a))
			}
		}
		for _, a := range want {
			if slices.Contains(have[label], a) {
				continue
			}
			changed = true
			if e := n.host.AddrReplace(lo, servedAddr(label, a)); e != nil {
				err = errors.Join(err, fmt.Errorf("network: address %s: %w", a, e))
			}
		}
	}
	return changed, err
}

func servedAddr(label string, a netip.Addr) *netlink.Addr {
	return &netlink.Addr{IPNet: host.Single(a), Label: label, Scope: int(netlink.SCOPE_HOST)}
}

func (n *Network) unserve(lo netlink.Link, label string, a netip.Addr) error {
	if err := n.host.AddrDel(lo, servedAddr(label, a)); err != nil && !errors.Is(err, unix.EADDRNOTAVAIL) {
		return fmt.Errorf("network: address %s: %w", a, err)
	}
	return nil
}

// serveNothing removes the addresses of all purposes, also those of an earlier run.
func (n *Network) serveNothing() error {
	clear(n.asked)
	clear(n.served)
	lo, have, err := n.servedNow()
	if err != nil {
		return nil //nolint:nilerr // a namespace without lo has no such address
	}
	for label, addrs := range have {
		for _, a := range addrs {
			err = errors.Join(err, n.unserve(lo, label, a))
		}
	}
	return err
}

// isServed reports whether the host has an address for one of our purposes.
func (n *Network) isServed(ip net.IP) bool {
	addr, ok := netip.AddrFromSlice(ip.To4())
	if !ok {
		return false
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, addrs := range n.served {
		if slices.Contains(addrs, addr) {
			return true
		}
	}
	return false
}
