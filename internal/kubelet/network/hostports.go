package network

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"net/netip"
	"strings"

	"golang.org/x/sys/unix"
)

// HostPort forwards a port of the host to a pod.
type HostPort struct {
	HostIP        netip.Addr // invalid or 0.0.0.0: every address of the host
	HostPort      uint16
	ContainerPort uint16
	Protocol      string // TCP, UDP or SCTP; empty is TCP
}

// element is one element of a set or map of the table.
type element struct {
	set      string
	key, val []byte
}

// AddHostPorts forwards the ports to the pod at addr, in one transaction. owner, the slot, is how
// they are removed. A port another pod has is an error that names it, and then none is added.
// Calling it again with the same ports does nothing.
func (n *Network) AddHostPorts(owner string, addr netip.Addr, ports []HostPort) error {
	if len(ports) == 0 {
		return nil
	}
	list, err := elements(addr, ports)
	if err != nil {
		return err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if _, have := n.ports[owner]; have {
		return nil
	}
	for _, others := range n.ports {
		for _, o := range others {
			for i, e := range list {
				if i < len(ports) && o.set == e.set && bytes.Equal(o.key, e.key) {
					return fmt.Errorf("network: host port %d/%s is taken by another pod", ports[i].HostPort, ports[i].Protocol)
				}
			}
		}
	}
	if n.ready {
		if err := n.change(list, true); err != nil {
			return fmt.Errorf("network: host ports: %w", err)
		}
	}
	// When the rules are not there yet, Setup brings these along.
	n.ports[owner] = list
	return nil
}

// RemoveHostPorts ends what AddHostPorts began for owner.
func (n *Network) RemoveHostPorts(owner string) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	list, have := n.ports[owner]
	if !have {
		return nil
	}
	if n.ready {
		if err := n.change(list, false); err != nil {
			return fmt.Errorf("network: host ports: %w", err)
		}
	}
	delete(n.ports, owner)
	return nil
}

// elements are the map entries of the ports, in their order, and the pod's hairpin entry.
func elements(addr netip.Addr, ports []HostPort) ([]element, error) {
	pod := addr.As4()
	var list []element
	for _, p := range ports {
		proto, err := protocol(p.Protocol)
		if err != nil {
			return nil, err
		}
		key := []byte{proto, 0, 0, 0, 0, 0, 0, 0}
		binary.BigEndian.PutUint16(key[4:], p.HostPort)
		val := append(append([]byte{}, pod[:]...), 0, 0, 0, 0)
		binary.BigEndian.PutUint16(val[4:], p.ContainerPort)
		e := element{set: "hostports", key: key, val: val}
		if p.HostIP.IsValid() && !p.HostIP.IsUnspecified() {
			if !p.HostIP.Is4() {
				return nil, fmt.Errorf("network: host address %s: only IPv4 is served", p.HostIP)
			}
			ip := p.HostIP.As4()
			e.set, e.key = "hostports-at", append(ip[:], key...)
		}
		list = append(list, e)
	}
	return append(list, element{set: "hairpins", key: append(pod[:], pod[:]...)}), nil
}

func protocol(name string) (byte, error) {
	switch strings.ToUpper(name) {
	case "", "TCP":
		return unix.IPPROTO_TCP, nil
	case "UDP":
		return unix.IPPROTO_UDP, nil
	case "SCTP":
		return unix.IPPROTO_SCTP, nil
	}
	return 0, fmt.Errorf("network: unknown protocol %q", name)
}
