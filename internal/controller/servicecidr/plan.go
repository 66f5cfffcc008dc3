package servicecidr

import (
	"fmt"
	"net/netip"
	"strings"

	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"minik8s/internal/api"
)

// held is an address that is in use, and by what.
type held struct {
	addr netip.Addr
	by   string // "service default/web"
}

// Default is the ServiceCIDR with the range of the masters' setting.
func Default(services netip.Prefix) *networkingv1.ServiceCIDR {
	return &networkingv1.ServiceCIDR{ObjectMeta: metav1.ObjectMeta{Name: api.DefaultServiceCIDR},
		Spec: networkingv1.ServiceCIDRSpec{CIDRs: []string{services.Masked().String()}}}
}

// users are those that need a ServiceCIDR: they have an address of it that no other one has which stays.
func users(cidr *networkingv1.ServiceCIDR, w *world) (out []string) {
next:
	for _, h := range w.inUse() {
		if !api.Covers(cidr, h.addr) {
			continue
		}
		for _, other := range w.cidrs {
			if other.Name != cidr.Name && other.DeletionTimestamp == nil && api.Covers(other, h.addr) {
				continue next
			}
		}
		out = append(out, h.by)
	}
	return out
}

// condition is what a ServiceCIDR says of itself. users are meant only where it is being deleted.
func condition(cidr *networkingv1.ServiceCIDR, users []string) metav1.Condition {
	c := metav1.Condition{Type: networkingv1.ServiceCIDRConditionReady, Status: metav1.ConditionTrue, Reason: "Ready",
		Message: "Services get addresses of it", ObservedGeneration: cidr.Generation}
	if cidr.DeletionTimestamp != nil {
		c.Status, c.Reason = metav1.ConditionFalse, networkingv1.ServiceCIDRReasonTerminating
		c.Message = "it goes when its addresses are free: " + some(users)
	}
	return c
}

// named is how many users a message names.
const named = 5

func some(users []string) string {
	if len(users) <= named {
		return strings.Join(users, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(users[:named], ", "), len(users)-named)
}
