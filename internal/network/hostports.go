package network

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"net/netip"
	"strings"

	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"

	"minik8s/internal/nft"
)

// hostPort is a port of the host that is forwarded to a pod.
type hostPort struct {
	at       netip.Addr // of the host; invalid: every one
	port     uint16
	target   uint16 // in the pod
	protocol byte   // of layer 4
}

func (p hostPort) String() string { return fmt.Sprintf("%d/%s", p.port, protocolNames[p.protocol]) }

var protocolNames = map[byte]corev1.Protocol{unix.IPPROTO_TCP: corev1.ProtocolTCP, unix.IPPROTO_UDP: corev1.ProtocolUDP, unix.IPPROTO_SCTP: corev1.ProtocolSCTP}

// parsePorts converts a Pod's container ports. The default protocol is TCP.
func parsePorts(ports []corev1.ContainerPort) ([]hostPort, error) {
	var out []hostPort
	for _, p := range ports {
		h := hostPort{port: uint16(p.HostPort), target: uint16(p.ContainerPort)}
		switch strings.ToUpper(string(p.Protocol)) {
		case "", "TCP":
			h.protocol = unix.IPPROTO_TCP
		case "UDP":
			h.protocol = unix.IPPROTO_UDP
		case "SCTP":
			h.protocol = unix.IPPROTO_SCTP
		default:
			return nil, fmt.Errorf("network: host port %d: unknown protocol %q", p.HostPort, p.Protocol)
		}
		if p.HostIP != "" {
			at, err := netip.ParseAddr(p.HostIP)
			if err != nil {
				return nil, fmt.Errorf("network: host port %s: %w", h, err)
			}
			if !at.Is4() && !at.IsUnspecified() {
				return nil, fmt.Errorf("network: host port %s at %s: only IPv4 is served", h, at)
			}
			if !at.IsUnspecified() {
				h.at = at
			}
		}
		out = append(out, h)
	}
	return out, nil
}

// published are the published host ports of one sandbox.
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

// AddHostPorts forwards the host ports of a sandbox to its address, in one transaction; Disconnect ends that. A
// port that another sandbox has is an error that names it, and then none is added. For a sandbox that has its
// ports already it does nothing.
func (n *Network) AddHostPorts(sandbox string, addr netip.Addr, list []corev1.ContainerPort) error {
	if len(list) == 0 {
		return nil
	}
	ports, err := parsePorts(list)
	if err != nil {
		return err
	}
	wanted := elements(addr, ports)
	n.mu.Lock()
	defer n.mu.Unlock()
	if _, have := n.ports[sandbox]; have {
		return nil
	}
	for _, others := range n.ports {
		for _, o := range others.elements {
			for i, p := range ports { // the first elements are the ports', in their order
				if e := wanted[i]; o.Set == e.Set && bytes.Equal(o.Key, e.Key) {
					return fmt.Errorf("network: host port %s is taken by another pod", p)
				}
			}
		}
	}
	// Before Setup there is no table yet; Setup adds these.
	p := &published{elements: wanted}
	n.ports[sandbox] = p
	if n.ready {
		if err := n.nf.Change(n.TableName(), true, wanted); err != nil {
			// If the table was changed, by a flush for example, all of it is written again.
			if same, serr := n.nf.Same(n.desired()); serr == nil && !same {
				err = n.apply()
			}
			if err != nil {
				delete(n.ports, sandbox)
				return fmt.Errorf("network: host ports: %w", err)
			}
		}
	}
	p.relays = n.relays(addr, ports)
	if udp := udpPorts(ports); len(udp) > 0 {
		// A client that was sending before the pod existed has a tracked flow without DNAT.
		n.endFlows(udp...)
	}
	return nil
}

func udpPorts(ports []hostPort) (out []uint16) {
	for _, p := range ports {
		if p.protocol == unix.IPPROTO_UDP {
			out = append(out, p.port)
		}
	}
	return out
}

// removeHostPorts undoes AddHostPorts.
func (n *Network) removeHostPorts(sandbox string) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	p, have := n.ports[sandbox]
	if !have {
		return nil
	}
	p.close()
	if n.ready {
		if err := n.nf.Change(n.TableName(), false, p.elements); err != nil {
			return fmt.Errorf("network: host ports: %w", err)
		}
	}
	delete(n.ports, sandbox)
	return nil
}

// elements are the map entries of the ports, in their order, and the pod's hairpin entry.
func elements(addr netip.Addr, ports []hostPort) []nft.Element {
	pod := addr.As4()
	var list []nft.Element
	for _, p := range ports {
		key := []byte{p.protocol, 0, 0, 0, 0, 0, 0, 0}
		binary.BigEndian.PutUint16(key[4:], p.port)
		val := append(append([]byte{}, pod[:]...), 0, 0, 0, 0)
		binary.BigEndian.PutUint16(val[4:], p.target)
		e := nft.Element{Set: hostPorts, Key: key, Value: val}
		if p.at.IsValid() {
			ip := p.at.As4()
			e.Set, e.Key = hostPortsAt, append(ip[:], key...)
		}
		list = append(list, e)
	}
	return append(list, nft.Element{Set: hairpins, Key: append(pod[:], pod[:]...)})
}
