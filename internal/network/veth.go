package network

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"minik8s/internal/network/host"
	"minik8s/internal/network/ipam"
)

// LinkName is the name of the host's end of the veth of a sandbox, whose id is at least eight letters or digits.
func (n *Network) LinkName(sandbox string) string { return n.host.LinkPrefix() + sandbox[:8] }

// Up brings up the loopback device of the network namespace the calling thread is in.
func Up() error {
	h, err := netlink.NewHandle(unix.NETLINK_ROUTE)
	if err != nil {
		return fmt.Errorf("network: netlink: %w", err)
	}
	defer h.Close()
	return loUp(h)
}

func loUp(h *netlink.Handle) error {
	// lo is the first device of every namespace.
	lo := &netlink.Device{LinkAttrs: netlink.LinkAttrs{Index: 1, Name: "lo"}}
	if err := h.LinkSetUp(lo); err != nil {
		return fmt.Errorf("network: lo: %w", err)
	}
	return nil
}

// Connect joins a sandbox's network namespace to the host by a link of its own and returns the address it got. It
// must be called on a thread that is in that namespace and locked to its goroutine. On an error nothing is left
// except what ends with the namespace. The error is ipam.ErrNoAddress when all addresses of the node's range are in use.
func (n *Network) Connect(sandbox string) (_ netip.Addr, err error) {
	addr, err := n.pool.Get()
	if errors.Is(err, ipam.ErrNoAddress) { // some may be of pods that were just removed
		n.endFlows()
		addr, err = n.pool.Get()
	}
	if err != nil {
		return netip.Addr{}, fmt.Errorf("network: %w", err)
	}
	defer func() {
		if err != nil {
			n.pool.Put(addr)
		}
	}()
	n.mu.Lock()
	mtu, source := n.mtu, n.source
	n.mu.Unlock()

	pod, err := netlink.NewHandle(unix.NETLINK_ROUTE)
	if err != nil {
		return netip.Addr{}, fmt.Errorf("network: netlink: %w", err)
	}
	defer pod.Close()
	if err := loUp(pod); err != nil {
		return netip.Addr{}, err
	}
	// The veth is created from inside the namespace, so each end is created in its place and with its name.
	attrs := netlink.NewLinkAttrs()
	attrs.Name, attrs.MTU, attrs.HardwareAddr = "eth0", mtu, host.MAC(addr)
	veth := &netlink.Veth{
		LinkAttrs: attrs, PeerName: n.LinkName(sandbox), PeerHardwareAddr: hostMAC,
		PeerNamespace: n.host.Fd(),
	}
	if err := pod.LinkAdd(veth); err != nil {
		return netip.Addr{}, fmt.Errorf("network: veth %s: %w", n.LinkName(sandbox), err)
	}
	hostEnd, err := n.connectHost(sandbox, addr, source)
	if err != nil {
		return netip.Addr{}, err
	}
	if err := connectPod(pod, addr); err != nil {
		return netip.Addr{}, errors.Join(err, n.host.LinkDel(hostEnd))
	}
	n.mu.Lock()
	n.pods[sandbox] = addr
	if source != n.source { // it was chosen again meanwhile
		n.poke()
	}
	n.mu.Unlock()
	return addr, nil
}

// connectPod configures the pod's end: its address, the gateway's hardware address and the two routes.
func connectPod(h *netlink.Handle, addr netip.Addr) error {
	eth0, err := h.LinkByName("eth0")
	if err != nil {
		return fmt.Errorf("network: eth0: %w", err)
	}
	index, gw := eth0.Attrs().Index, net.IP(host.Gateway.AsSlice())
	if err := h.AddrAdd(eth0, &netlink.Addr{IPNet: host.Single(addr)}); err != nil {
		return fmt.Errorf("network: address %s: %w", addr, err)
	}
	if err := h.LinkSetUp(eth0); err != nil {
		return fmt.Errorf("network: eth0: %w", err)
	}
	if err := h.NeighSet(host.Neighbour(index, host.Gateway, hostMAC)); err != nil {
		return fmt.Errorf("network: gateway's neighbour entry: %w", err)
	}
	if err := h.RouteAdd(&netlink.Route{LinkIndex: index, Dst: host.Single(host.Gateway), Scope: netlink.SCOPE_LINK}); err != nil {
		return fmt.Errorf("network: route to the gateway: %w", err)
	}
	if err := h.RouteAdd(&netlink.Route{LinkIndex: index, Gw: gw}); err != nil {
		return fmt.Errorf("network: default route: %w", err)
	}
	return nil
}

// connectHost configures the host's end: the pod's hardware address and the route to it.
func (n *Network) connectHost(sandbox string, addr, source netip.Addr) (netlink.Link, error) {
	link, err := n.host.LinkByName(n.LinkName(sandbox))
	if err != nil {
		return nil, fmt.Errorf("network: %s: %w", n.LinkName(sandbox), err)
	}
	index := link.Attrs().Index
	if err := host.Harden(n.LinkName(sandbox)); err != nil {
		return nil, errors.Join(err, n.host.LinkDel(link))
	}
	if err := n.host.LinkSetUp(link); err != nil {
		return nil, fmt.Errorf("network: %s: %w", n.LinkName(sandbox), err)
	}
	return link, n.routeTo(index, addr, source)
}

// routeTo adds the host's route to a pod's address by its link, with the source of what the host itself sends there.
func (n *Network) routeTo(index int, addr, source netip.Addr) error {
	if err := n.host.NeighSet(host.Neighbour(index, addr, host.MAC(addr))); err != nil {
		return fmt.Errorf("network: neighbour entry of %s: %w", addr, err)
	}
	route := &netlink.Route{LinkIndex: index, Dst: host.Single(addr), Src: source.AsSlice(), Scope: netlink.SCOPE_LINK}
	if err := n.host.RouteReplace(route); err != nil {
		return fmt.Errorf("network: route to %s: %w", addr, err)
	}
	return nil
}

// Disconnect frees a sandbox's address, removes its route and its host ports and ends its UDP flows in the background. The veth
// ends with the namespace, or by Sweep if the namespace is lost; a connection that the pod had with somebody who is away keeps that
// for minutes, in which the address may be another node's. Calling it again does nothing.
func (n *Network) Disconnect(sandbox string, addr netip.Addr) error {
	n.mu.Lock()
	_, had := n.pods[sandbox]
	delete(n.pods, sandbox)
	n.mu.Unlock()
	err := n.removeHostPorts(sandbox)
	if had && addr.Is4() { // while nobody else can have the address
		err = errors.Join(err, n.host.DeleteRoute(&netlink.Route{Dst: host.Single(addr), Scope: netlink.SCOPE_LINK}))
	}
	if addr.IsValid() {
		n.pool.Retire(addr)
		n.endFlowsSoon()
	}
	return err
}

// Restore marks the address of a sandbox of an earlier run as used. Keep ensures that the host still has a route to
// it.
func (n *Network) Restore(sandbox string, addr netip.Addr) {
	if addr.Is4() {
		n.pool.Reserve(addr)
		n.mu.Lock()
		n.pods[sandbox] = addr
		n.mu.Unlock()
	}
}

// Sweep removes the links of sandboxes other than these, which an earlier run left behind.
func (n *Network) Sweep(sandboxes []string) error {
	keep := map[string]bool{}
	for _, id := range sandboxes {
		keep[n.LinkName(id)] = true
	}
	links, err := host.Dump(n.host.LinkList)
	if err != nil {
		return fmt.Errorf("network: links: %w", err)
	}
	var errs []error
	for _, l := range links {
		a := l.Attrs()
		if l.Type() != "veth" || !strings.HasPrefix(a.Name, n.host.LinkPrefix()) || a.HardwareAddr.String() != hostMAC.String() || keep[a.Name] {
			continue
		}
		// It may have gone meanwhile together with its namespace.
		if err := n.host.LinkDel(l); err != nil && !errors.Is(err, unix.ENODEV) {
			errs = append(errs, fmt.Errorf("network: %s: %w", a.Name, err))
		}
	}
	return errors.Join(errs...)
}
