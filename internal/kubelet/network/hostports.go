package network

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"net/netip"
	"strings"

	"golang.org/x/sys/unix"

	"minik8s/internal/nft"
)

// HostPort forwards a port of the host to a pod.
type HostPort struct {
	HostIP        netip.Addr // invalid or 0.0.0.0: every address of the host
	HostPort      uint16
	ContainerPort uint16
	Protocol      string // TCP, UDP or SCTP; empty is TCP
}

// published is what forwards the host ports of one owner.
type published struct {
	elements []nft.Element
	relays   []*relay // on loopback
}

func (p *published) close() {
	for _, r := range p.relays {
		r.close()
	}
	p.relays = nil
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
		for _, o := range others.elements {
			for i, e := range list {
				if i < len(ports) && o.Set == e.Set && bytes.Equal(o.Key, e.Key) {
					return fmt.Errorf("network: host port %d/%s is taken by another pod", ports[i].HostPort, ports[i].Protocol)
				}
			}
		}
	}
	// When the rules are not there yet, or have just been flushed, Setup or Repair brings these along.
	p := &published{elements: list}
	n.ports[owner] = p
	if n.ready {
		if err := n.nf.Change(n.TableName(), true, list); err != nil {
			if same, serr := n.nf.Same(n.desired()); serr == nil && !same {
				err = n.nf.Apply(n.desired())
			}
			if err != nil {
				delete(n.ports, owner)
				return fmt.Errorf("network: host ports: %w", err)
			}
		}
	}
	p.relays = n.relays(addr, ports)
	if udp := udpPorts(ports); len(udp) > 0 {
		// Who has been sending before there was a pod has a flow that leads nowhere.
		n.endFlows(udp...)
	}
	return nil
}

func udpPorts(ports []HostPort) (out []uint16) {
	for _, p := range ports {
		if strings.EqualFold(p.Protocol, "UDP") {
			out = append(out, p.HostPort)
		}
	}
	return out
}

// RemoveHostPorts ends what AddHostPorts began for owner.
func (n *Network) RemoveHostPorts(owner string) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	p, have := n.ports[owner]
	if !have {
		return nil
	}
	p.close()
	if n.ready {
		if err := n.nf.Change(n.TableName(), false, p.elements); err != nil {
			return fmt.Errorf("network: host ports: %w", err)
		}
	}
	delete(n.ports, owner)
	return nil
}

// elements are the map entries of the ports, in their order, and the pod's hairpin entry.
func elements(addr netip.Addr, ports []HostPort) ([]nft.Element, error) {
	pod := addr.As4()
	var list []nft.Element
	for _, p := range ports {
		proto, err := protocol(p.Protocol)
		if err != nil {
			return nil, err
		}
		key := []byte{proto, 0, 0, 0, 0, 0, 0, 0}
		binary.BigEndian.PutUint16(key[4:], p.HostPort)
		val := append(append([]byte{}, pod[:]...), 0, 0, 0, 0)
		binary.BigEndian.PutUint16(val[4:], p.ContainerPort)
		e := nft.Element{Set: hostPorts, Key: key, Value: val}
		if p.HostIP.IsValid() && !p.HostIP.IsUnspecified() {
			if !p.HostIP.Is4() {
				return nil, fmt.Errorf("network: host address %s: only IPv4 is served", p.HostIP)
			}
			ip := p.HostIP.As4()
			e.Set, e.Key = hostPortsAt, append(ip[:], key...)
		}
		list = append(list, e)
	}
	return append(list, nft.Element{Set: hairpins, Key: append(pod[:], pod[:]...)}), nil
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
