package strategy

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"minik8s/config"
	"minik8s/internal/api"
	"minik8s/internal/registry"
)

// The groups of writes that take addresses, ranges of them, or ports of nodes; see registry.Strategy.Exclusive.
const (
	addressGroup  = "addresses"
	nodePortGroup = "nodeports"
)

// addresses gives Services and DNS objects their addresses.
type addresses struct {
	services netip.Prefix
	pods     netip.Prefix // invalid: only Nodes say which addresses are pods'
}

// The places in the range that are kept for certain Services.
const (
	placeOfAPI = 1
	placeOfDNS = 10
)

// reserved are the Services that the first and the tenth address are for.
var reserved = map[uint32]string{
	placeOfAPI: "service " + metav1.NamespaceDefault + "/" + api.KubernetesService,
	placeOfDNS: "service " + metav1.NamespaceSystem + "/" + api.DNSService,
}

// addressed are the kinds whose objects have an address to themselves, of one space.
var addressed = []*api.Kind{api.Services, api.DNSes}

// holderOf returns the object that has an address, or else the IPAddress by which somebody keeps it for something else; nil if it
// is free.
func holderOf(addr netip.Addr, others registry.Lister) api.Object {
	for _, kind := range addressed {
		if holder := others.Holder(kind, addressName(addr.String())); holder != nil {
			return holder
		}
	}
	return others.Get(api.IPAddresses, "", addr.String())
}

// ranges are those that Services get addresses of: that of the masters' setting first, then those of ServiceCIDRs that are to
// stay.
func (a addresses) ranges(others registry.Lister) []netip.Prefix {
	out := []netip.Prefix{a.services.Masked()}
	for _, obj := range others.List(api.ServiceCIDRs) {
		if cidr := obj.(*networkingv1.ServiceCIDR); cidr.DeletionTimestamp == nil {
			for _, r := range api.ServiceRanges(cidr) {
				if !slices.Contains(out, r) {
					out = append(out, r)
				}
			}
		}
	}
	return out
}

// at is the n-th address of a range.
func at(r netip.Prefix, n uint32) netip.Addr {
	first := r.Addr().As4()
	return netip.AddrFrom4([4]byte(binary.BigEndian.AppendUint32(nil, binary.BigEndian.Uint32(first[:])+n)))
}

// place is the number of an address in a range.
func place(r netip.Prefix, addr netip.Addr) uint32 {
	first, this := r.Addr().As4(), addr.As4()
	return binary.BigEndian.Uint32(this[:]) - binary.BigEndian.Uint32(first[:])
}

// keptFor is the Service that an address is kept for; empty: it is for anybody.
func (a addresses) keptFor(addr netip.Addr) string {
	if !a.services.Contains(addr) {
		return ""
	}
	return reserved[place(a.services.Masked(), addr)]
}

// band is how much of a range is looked at last, because people choose from it: its beginning, as in Kubernetes (KEP-3070).
func band(size, share, most int) int { return min(max(16, size/share), most) }

// give returns the address that an object asks for, or if it asks for none one that is free.
func (a addresses) give(obj api.Object, asked string, others registry.Lister) (string, error) {
	if asked == "" {
		addr, err := a.free(others)
		if err != nil {
			return "", fmt.Errorf("failed to allocate IP: %w", err)
		}
		return addr.String(), nil
	}
	addr, err := netip.ParseAddr(asked)
	if err == nil {
		err = a.chosen(obj, addr, others)
	}
	if err != nil {
		return asked, fmt.Errorf("failed to allocate IP %s: %w", asked, err)
	}
	return asked, nil
}

// free returns an address that nothing has. The search begins anywhere, so that it is short, and so that an address
// that was just given back is not soon another's.
func (a addresses) free(others registry.Lister) (netip.Addr, error) {
	ranges := a.ranges(others)
	machines := machines(others, func(addr netip.Addr) bool {
		return slices.ContainsFunc(ranges, func(r netip.Prefix) bool { return r.Contains(addr) })
	})
	for _, r := range ranges {
		size := 1 << (32 - r.Bits())
		n, ok := search(1, band(size, 16, 256), size-1, func(n int) bool {
			addr := at(r, uint32(n))
			return a.keptFor(addr) == "" && machines[addr] == "" && holderOf(addr, others) == nil
		})
		if ok {
			return at(r, uint32(n)), nil
		}
	}
	also := ""
	if len(ranges) > 1 {
		also = fmt.Sprintf(", and of the ServiceCIDRs beside it (%s),", join(ranges[1:]))
	}
	return netip.Addr{}, fmt.Errorf("every address of --service-cidr %s%s has a Service or a DNS object: delete some, create a ServiceCIDR with another range, or choose an address outside of it",
		a.services, also)
}

func join(ranges []netip.Prefix) string {
	var out []string
	for _, r := range ranges {
		out = append(out, r.String())
	}
	return strings.Join(out, ", ")
}

// machines are those addresses of Nodes that count, with their names.
func machines(others registry.Lister, count func(netip.Addr) bool) map[netip.Addr]string {
	out := map[netip.Addr]string{}
	for _, obj := range others.List(api.Nodes) {
		node := obj.(*corev1.Node)
		for _, has := range node.Status.Addresses {
			if ip, err := netip.ParseAddr(has.Address); err == nil && count(ip) {
				out[ip] = node.Name
			}
		}
	}
	return out
}

// search looks for a number from first on and below end, first not below from.
func search(first, from, end int, free func(int) bool) (int, bool) {
	for _, part := range [][2]int{{max(first, from), end}, {first, min(from, end)}} {
		count := part[1] - part[0]
		if count <= 0 {
			continue
		}
		start := rand.IntN(count)
		for i := range count {
			if n := part[0] + (start+i)%count; free(n) {
				return n, true
			}
		}
	}
	return 0, false
}

// chosen says why an object cannot have the address that its user has chosen; nil if it can.
func (a addresses) chosen(obj api.Object, addr netip.Addr, others registry.Lister) error {
	if holder := holderOf(addr, others); holder != nil {
		if sameObject(holder, obj) {
			return nil
		}
		return fmt.Errorf("%s has it: choose another, or none, to get one that is free", titleOf(holder))
	}
	if owner := a.keptFor(addr); owner != "" && owner != titleOf(obj) {
		return fmt.Errorf("it is kept for %s: choose another", owner)
	}
	if node := machines(others, func(has netip.Addr) bool { return has == addr })[addr]; node != "" {
		return fmt.Errorf("node %s has it: choose another", node)
	}
	if !addr.Is4() {
		return errors.New("expected an IPv4 address")
	}
	for i, r := range a.ranges(others) {
		if !r.Contains(addr) {
			continue
		}
		if n, last := place(r, addr), uint32(1<<(32-r.Bits())-1); n == 0 || n == last {
			of := "the ServiceCIDR"
			if i == 0 {
				of = "--service-cidr"
			}
			return fmt.Errorf("the first and the last address of %s %s are nobody's: choose another", of, r)
		}
		return nil
	}
	switch {
	case addr.IsLoopback(), addr.IsLinkLocalUnicast(), !addr.IsGlobalUnicast(), addr.As4()[0] == 0, addr.As4()[0] >= 224:
		return errors.New("expected an address that one machine of a network could have: it is a loopback, link-local, multicast or reserved one")
	case a.pods.IsValid() && a.pods.Contains(addr):
		return fmt.Errorf("it is in the range of pods' addresses, --cluster-cidr %s: choose another", a.pods)
	}
	for _, obj := range others.List(api.Nodes) {
		node := obj.(*corev1.Node)
		for _, cidr := range node.Spec.PodCIDRs {
			if r, err := netip.ParsePrefix(cidr); err == nil && r.Contains(addr) {
				return fmt.Errorf("it is in %s, where the pods of node %s have their addresses: choose another", cidr, node.Name)
			}
		}
	}
	return nil
}

// addressName and portName name what an object has, for Strategy.Holds.
func addressName(addr string) string { return "address/" + addr }
func portName(port int32) string     { return fmt.Sprint("port/", port) }

func nameOf(obj api.Object) string { return obj.GetNamespace() + "/" + obj.GetName() }

// titleOf is kind, namespace and name, for messages: "service default/web".
func titleOf(obj api.Object) string {
	if obj.GetNamespace() == "" {
		return api.KindOf(obj).Singular + " " + obj.GetName()
	}
	return api.KindOf(obj).Singular + " " + nameOf(obj)
}

// sameObject reports whether what holds something is an earlier version of obj.
func sameObject(holder, obj api.Object) bool {
	return api.KindOf(holder) == api.KindOf(obj) && holder.GetNamespace() == obj.GetNamespace() && holder.GetName() == obj.GetName()
}

// nodePorts gives Services ports of the nodes.
type nodePorts struct{ config.PortRange }

// chosen says why a Service cannot have the port that its user has chosen; nil if it can. pods is who has which as a host port.
func (p nodePorts) chosen(svc *corev1.Service, protocol corev1.Protocol, port int32, pods map[hostPort]string, others registry.Lister) error {
	if holder := others.Holder(api.Services, portName(port)); holder != nil {
		if sameObject(holder, svc) {
			return nil
		}
		return fmt.Errorf("provided port is already allocated: service %s has it", nameOf(holder))
	}
	if pod := pods[hostPort{protocol, port}]; pod != "" {
		return fmt.Errorf("pod %s has it as a host port: choose another, or none, to get one that is free", pod)
	}
	if !p.Contains(int(port)) {
		return fmt.Errorf("provided port is not in the valid range. The range of valid ports is %s", p)
	}
	return nil
}

// free returns a port that no Service has, and that is not among own, which this Service gets by the same write.
func (p nodePorts) free(own map[int32]bool, pods map[hostPort]string, others registry.Lister) (int32, error) {
	size := p.Last - p.First + 1
	n, ok := search(p.First, p.First+band(size, 32, 128), p.Last+1, func(n int) bool {
		for _, protocol := range []corev1.Protocol{corev1.ProtocolTCP, corev1.ProtocolUDP, corev1.ProtocolSCTP} { // several may share it
			if pods[hostPort{protocol, int32(n)}] != "" {
				return false
			}
		}
		return !own[int32(n)] && others.Holder(api.Services, portName(int32(n))) == nil
	})
	if !ok {
		return 0, fmt.Errorf("every port of --service-node-port-range %s has a Service: delete Services, or start the masters with a wider one", p)
	}
	return int32(n), nil
}
