package network

import (
	"errors"
	"fmt"

	"github.com/vishvananda/netlink"

	"minik8s/internal/network/host"
)

// Resolver is the link to which systemd-resolved ties a DNS server of ours (see package hostdns): it asks no server that
// belongs to no link with an address. Nothing is sent through it: it is a veth with both ends here. It outlives the
// daemon, also a kill -9; DropResolver and Teardown remove it, and then resolved forgets the server.
func (n *Network) Resolver() (index int, err error) {
	name := n.resolverName()
	if _, err := n.host.LinkByName(name); err != nil {
		attrs := netlink.NewLinkAttrs()
		attrs.Name = name
		if err := n.host.LinkAdd(&netlink.Veth{LinkAttrs: attrs, PeerName: name + "p"}); err != nil {
			return 0, fmt.Errorf("network: %s: %w", name, err)
		}
	}
	// A run that was killed may have left it half-made: all is done each time.
	for _, end := range []string{name, name + "p"} {
		link, err := n.host.LinkByName(end)
		if err == nil {
			err = host.Harden(end)
		}
		if err == nil && end == name {
			index = link.Attrs().Index
			// Of the scope site, so that nothing is sent from it to the world: more than a link's, which resolved wants, less than the world's.
			err = n.host.AddrReplace(link, &netlink.Addr{IPNet: host.Single(host.Resolver), Scope: int(netlink.SCOPE_SITE)})
		}
		if err == nil {
			err = n.host.LinkSetUp(link)
		}
		if err != nil {
			return 0, errors.Join(fmt.Errorf("network: %s: %w", end, err), n.DropResolver())
		}
	}
	return index, nil
}

// DropResolver removes the link of Resolver, if there is one.
func (n *Network) DropResolver() error {
	link, err := n.host.LinkByName(n.resolverName())
	if err != nil {
		return nil //nolint:nilerr // there is none
	}
	return n.host.LinkDel(link)
}

// resolverName does not begin as the names of pods' links do.
func (n *Network) resolverName() string { return "md" + n.host.Owner() }
