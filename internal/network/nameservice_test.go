package network

import (
	"errors"
	"net"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// The link for the host's resolver is one that systemd-resolved takes for a way to a server, is made once, and goes with the
// rest.
func TestResolverLink(t *testing.T) {
	n := running(t)
	index, err := n.Resolver()
	if err != nil {
		t.Fatal(err)
	}
	if again, err := n.Resolver(); err != nil || again != index {
		t.Errorf("then it is link %d, before %d: %v", again, index, err)
	}
	// A run that was killed has left it without an address, and down.
	half, err := n.host.LinkByIndex(index)
	if err != nil {
		t.Fatal(err)
	}
	had, err := n.host.AddrList(half, netlink.FAMILY_V4)
	if err != nil || len(had) != 1 {
		t.Fatal(had, err)
	}
	if err := errors.Join(n.host.AddrDel(half, &had[0]), n.host.LinkSetDown(half)); err != nil {
		t.Fatal(err)
	}
	if again, err := n.Resolver(); err != nil || again != index {
		t.Errorf("then it is link %d, before %d: %v", again, index, err)
	}
	link, err := n.host.LinkByIndex(index)
	for end := time.Now().Add(10 * time.Second); err == nil && link.Attrs().RawFlags&unix.IFF_RUNNING == 0; link, err = n.host.LinkByIndex(index) {
		if time.Now().After(end) {
			t.Fatalf("its flags are %x", link.Attrs().RawFlags)
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	addrs, err := n.host.AddrList(link, netlink.FAMILY_V4)
	if err != nil || len(addrs) != 1 || addrs[0].Scope >= int(netlink.SCOPE_LINK) || addrs[0].Scope == int(netlink.SCOPE_UNIVERSE) {
		t.Errorf("it has %v, %v", addrs, err)
	}
	// Nothing is sent from its address.
	routes, err := n.host.RouteGet(net.IPv4(203, 0, 113, 1))
	if err != nil || len(routes) == 0 || routes[0].Src.Equal(addrs[0].IP) {
		t.Errorf("to the world it goes by %v, %v", routes, err)
	}
	if err := n.DropResolver(); err != nil {
		t.Fatal(err)
	}
	if err := n.DropResolver(); err != nil {
		t.Errorf("there is none: %v", err)
	}
	if _, err := n.Resolver(); err != nil {
		t.Fatal(err)
	}
	if err := n.Teardown(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{n.resolverName(), n.resolverName() + "p"} {
		if _, err := n.host.LinkByName(name); err == nil {
			t.Errorf("%s is left", name)
		}
	}
}
