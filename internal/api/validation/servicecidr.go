package validation

import (
	"fmt"
	"net/netip"

	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/validate/content"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// How many bits the prefix of a range of Services may have.
const (
	largestServices  = 8
	smallestServices = 30
)

// ServiceCIDR checks a ServiceCIDR.
func ServiceCIDR(c *networkingv1.ServiceCIDR) field.ErrorList {
	path := spec.Child("cidrs")
	if len(c.Spec.CIDRs) == 0 {
		return field.ErrorList{field.Required(path, "at least one range of addresses")}
	}
	if len(c.Spec.CIDRs) > 1 {
		return field.ErrorList{field.Invalid(path, c.Spec.CIDRs, "may only hold one range: Services have IPv4 addresses")}
	}
	text, path := c.Spec.CIDRs[0], path.Index(0)
	if errs := utilvalidation.IsValidCIDR(path, text); len(errs) > 0 {
		return errs
	}
	r, err := netip.ParsePrefix(text)
	invalid := func(why string) field.ErrorList { return field.ErrorList{field.Invalid(path, text, why)} }
	switch {
	case err != nil:
		return invalid(err.Error())
	case !r.Addr().Is4():
		return invalid("expected an IPv4 range: IPv6 is not configured on this cluster")
	case r.Bits() > smallestServices || r.Bits() < largestServices:
		return invalid(fmt.Sprintf("expected a range from /%d to /%d: the first and the last address are nobody's", largestServices, smallestServices))
	case r.Addr().IsLoopback(), r.Addr().IsLinkLocalUnicast(), r.Addr().As4()[0] == 0, r.Addr().As4()[0] >= 224:
		return invalid("expected addresses that machines of a network could have: these are loopback, link-local, multicast or reserved ones")
	}
	return nil
}

// ServiceCIDRUpdate checks the change from old.
func ServiceCIDRUpdate(c, old *networkingv1.ServiceCIDR) field.ErrorList {
	return apivalidation.ValidateImmutableField(c.Spec.CIDRs, old.Spec.CIDRs, spec.Child("cidrs"))
}

// ServiceCIDRStatusUpdate checks a write of the status.
func ServiceCIDRStatusUpdate(c, _ *networkingv1.ServiceCIDR) field.ErrorList {
	return metav1validation.ValidateConditions(c.Status.Conditions, field.NewPath("status", "conditions"))
}

// ipAddressName is the rule for the name of an IPAddress, which is the address.
func ipAddressName(name string, _ bool) (out []string) {
	for _, err := range utilvalidation.IsValidIP(nil, name) {
		out = append(out, err.Detail)
	}
	return out
}

// IPAddress checks an IPAddress.
func IPAddress(a *networkingv1.IPAddress) field.ErrorList {
	path, ref := spec.Child("parentRef"), a.Spec.ParentRef
	if ref == nil {
		return field.ErrorList{field.Required(path, "what the address is for")}
	}
	var errs field.ErrorList
	if ref.Group != "" {
		errs = append(errs, say(path.Child("group"), ref.Group, utilvalidation.IsDNS1123Subdomain(ref.Group))...)
	}
	for _, f := range []struct{ name, value string }{{"resource", ref.Resource}, {"namespace", ref.Namespace}, {"name", ref.Name}} {
		switch {
		case f.value == "" && f.name != "namespace":
			errs = append(errs, field.Required(path.Child(f.name), ""))
		case f.value != "":
			errs = append(errs, say(path.Child(f.name), f.value, content.IsPathSegmentName(f.value))...)
		}
	}
	return errs
}

// IPAddressUpdate checks the change from old.
func IPAddressUpdate(a, old *networkingv1.IPAddress) field.ErrorList {
	return apivalidation.ValidateImmutableField(a.Spec.ParentRef, old.Spec.ParentRef, spec.Child("parentRef"))
}
