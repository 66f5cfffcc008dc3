package hostports

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"log/slog"
	"net/netip"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"

	"minik8s/internal/nft"
	"minik8s/internal/relay"
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

// parse converts a Pod's container ports. The default protocol is TCP.
func parse(ports []corev1.ContainerPort) ([]hostPort, error) {
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

// The sets of the packet filter's table for which a Published has elements.
const (
	ByPort    = "hostports"    // (protocol, port) to (address, port)
	ByAddress = "hostports-at" // (address, protocol, port) to (address, port)
	Hairpins  = "hairpins"     // (address, address) of pods that have host ports
)

// Published are the host ports of one sandbox.
type Published struct {
	pod      netip.Addr
	ports    []hostPort
	elements []nft.Element  // the first are the ports', in their order
	relays   []*relay.Relay // on loopback
}

// New works out what the host ports of a sandbox with this address need. The error says which of them is wrong.
func New(pod netip.Addr, list []corev1.ContainerPort) (*Published, error) {
	ports, err := parse(list)
	if err != nil {
		return nil, err
	}
	return &Published{pod: pod, ports: ports, elements: elements(pod, ports)}, nil
}

// Elements are those that the ports need in the packet filter's table.
func (p *Published) Elements() []nft.Element { return p.elements }

// Free returns an error that names the first of the ports that another sandbox has.
func (p *Published) Free(other *Published) error {
	for i, port := range p.ports {
		e := p.elements[i]
		if slices.ContainsFunc(other.elements, func(o nft.Element) bool { return o.Set == e.Set && bytes.Equal(o.Key, e.Key) }) {
			return fmt.Errorf("network: host port %s is taken by another pod", port)
		}
	}
	return nil
}

// UDP are those of the ports that are UDP's.
func (p *Published) UDP() (out []uint16) {
	for _, port := range p.ports {
		if port.protocol == unix.IPPROTO_UDP {
			out = append(out, port.port)
		}
	}
	return out
}

// Listen starts to forward the ports on loopback, until Close. A port on which another program listens is left to it,
// which is logged.
func (p *Published) Listen(log *slog.Logger) {
	for _, port := range p.ports {
		at := port.at
		switch {
		case !at.IsValid():
			at = netip.AddrFrom4([4]byte{127, 0, 0, 1})
		case !at.IsLoopback():
			continue
		}
		r, err := relay.Listen(port.protocol, netip.AddrPortFrom(at, port.port), relay.To(netip.AddrPortFrom(p.pod, port.target)), log)
		if err != nil {
			log.Warn("a host port is not forwarded on loopback", "port", port.String(), "error", err)
			continue
		}
		if r != nil {
			p.relays = append(p.relays, r)
		}
	}
}

// Close ends what Listen has started.
func (p *Published) Close() {
	for _, r := range p.relays {
		r.Close()
	}
	p.relays = nil
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
		e := nft.Element{Set: ByPort, Key: key, Value: val}
		if p.at.IsValid() {
			ip := p.at.As4()
			e.Set, e.Key = ByAddress, append(ip[:], key...)
		}
		list = append(list, e)
	}
	return append(list, nft.Element{Set: Hairpins, Key: append(pod[:], pod[:]...)})
}
