package api

import (
	"net/netip"

	"github.com/google/uuid"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"minik8s/internal/api/minik8s"
)

// DefaultServiceCIDR is the name of the ServiceCIDR with the range that the masters were started with.
const DefaultServiceCIDR = "kubernetes"

// ServiceCIDRFinalizer holds a ServiceCIDR until none of its addresses is in use.
const ServiceCIDRFinalizer = "networking.k8s.io/service-cidr-finalizer"

// AddressManager is the value of the label networkingv1.LabelManagedBy of an IPAddress that an object implies.
const AddressManager = "minik8s.io"

// ServiceAddress is the address that an object has to itself in the space of Services' addresses; not valid if it has none.
func ServiceAddress(obj Object) netip.Addr {
	var text string
	switch o := obj.(type) {
	case *corev1.Service:
		text = o.Spec.ClusterIP
	case *minik8s.DNS:
		text = o.Spec.ServiceAddress
	}
	addr, err := netip.ParseAddr(text)
	if err != nil {
		return netip.Addr{}
	}
	return addr
}

// Covers reports whether an address is in one of a ServiceCIDR's ranges.
func Covers(cidr *networkingv1.ServiceCIDR, addr netip.Addr) bool {
	for _, r := range ServiceRanges(cidr) {
		if r.Contains(addr) {
			return true
		}
	}
	return false
}

// ServiceRanges are the ranges of a ServiceCIDR.
func ServiceRanges(cidr *networkingv1.ServiceCIDR) (out []netip.Prefix) {
	for _, text := range cidr.Spec.CIDRs {
		if r, err := netip.ParsePrefix(text); err == nil {
			out = append(out, r)
		}
	}
	return out
}

// impliedAddress is the IPAddress of an object that has an address; nil if it has none.
func impliedAddress(obj Object) Object {
	addr, kind := ServiceAddress(obj), KindOf(obj)
	if !addr.IsValid() || kind == nil {
		return nil
	}
	family := string(corev1.IPv4Protocol)
	if addr.Is6() {
		family = string(corev1.IPv6Protocol)
	}
	return &networkingv1.IPAddress{
		ObjectMeta: metav1.ObjectMeta{Name: addr.String(), UID: types.UID(uuid.NewSHA1(uuid.Nil, []byte(string(obj.GetUID())+"/"+addr.String())).String()),
			CreationTimestamp: obj.GetCreationTimestamp(),
			Labels:            map[string]string{networkingv1.LabelIPAddressFamily: family, networkingv1.LabelManagedBy: AddressManager}},
		Spec: networkingv1.IPAddressSpec{ParentRef: &networkingv1.ParentReference{Group: kind.Group, Resource: kind.Plural,
			Namespace: obj.GetNamespace(), Name: obj.GetName()}},
	}
}
