package validation

import (
	"slices"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	netutils "k8s.io/utils/net"
)

// Node checks a node.
func Node(node *corev1.Node) field.ErrorList {
	path := field.NewPath("spec")
	var errs field.ErrorList
	for i, cidr := range node.Spec.PodCIDRs {
		errs = append(errs, validation.IsValidCIDRForLegacyField(path.Child("podCIDRs").Index(i), cidr, true, nil)...)
	}
	if c := node.Spec.PodCIDRs; len(c) > 2 || len(c) == 2 && netutils.IPFamilyOfCIDRString(c[0]) == netutils.IPFamilyOfCIDRString(c[1]) {
		errs = append(errs, field.Invalid(path.Child("podCIDRs"), c, "a node has at most two CIDRs, one for each IP family"))
	}
	if len(node.Spec.PodCIDRs) > 0 && node.Spec.PodCIDRs[0] != node.Spec.PodCIDR {
		errs = append(errs, field.Invalid(path.Child("podCIDRs").Index(0), node.Spec.PodCIDRs[0], "must be the podCIDR, "+node.Spec.PodCIDR))
	}
	for i, t := range node.Spec.Taints {
		at := path.Child("taints").Index(i)
		errs = append(errs, metav1validation.ValidateLabelName(t.Key, at.Child("key"))...)
		errs = append(errs, say(at.Child("value"), t.Value, validation.IsValidLabelValue(t.Value))...)
		errs = append(errs, taintEffect(t.Effect, at.Child("effect"))...)
		if slices.ContainsFunc(node.Spec.Taints[:i], func(b corev1.Taint) bool { return b.Key == t.Key && b.Effect == t.Effect }) {
			errs = append(errs, field.Duplicate(at, t.Key+":"+string(t.Effect)))
		}
	}
	return append(errs, NodeStatus(node)...)
}

// NodeStatus checks what a kubelet reports about its node.
func NodeStatus(node *corev1.Node) field.ErrorList {
	path := field.NewPath("status")
	var errs field.ErrorList
	errs = append(errs, amounts(node.Status.Capacity, path.Child("capacity"))...)
	errs = append(errs, amounts(node.Status.Allocatable, path.Child("allocatable"))...)
	for i, a := range node.Status.Addresses {
		at := path.Child("addresses").Index(i)
		errs = append(errs, required(at.Child("type"), string(a.Type))...)
		if slices.Contains(node.Status.Addresses[:i], a) {
			errs = append(errs, field.Duplicate(at, string(a.Type)+" "+a.Address))
		}
	}
	return errs
}

func amounts(list corev1.ResourceList, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for _, name := range sorted(list) {
		at := path.Key(string(name))
		errs = append(errs, say(at, name, validation.IsQualifiedName(string(name)))...)
		if q := list[name]; q.Sign() < 0 {
			errs = append(errs, field.Invalid(at, q.String(), "must be greater than or equal to 0"))
		}
	}
	return errs
}

// NodeUpdate checks the change from old: podCIDRs and providerID must not change once they are set.
func NodeUpdate(node, old *corev1.Node) field.ErrorList {
	path := field.NewPath("spec")
	var errs field.ErrorList
	if len(old.Spec.PodCIDRs) > 0 && !slices.Equal(node.Spec.PodCIDRs, old.Spec.PodCIDRs) {
		errs = append(errs, field.Forbidden(path.Child("podCIDRs"), "node updates may not change podCIDR except from \"\" to valid"))
	}
	if old.Spec.ProviderID != "" && node.Spec.ProviderID != old.Spec.ProviderID {
		errs = append(errs, field.Forbidden(path.Child("providerID"), "node updates may not change providerID except from \"\" to valid"))
	}
	return errs
}

// Namespace checks a namespace.
func Namespace(ns *corev1.Namespace) field.ErrorList {
	var errs field.ErrorList
	for i, f := range ns.Spec.Finalizers {
		at := field.NewPath("spec", "finalizers").Index(i)
		errs = append(errs, say(at, f, validation.IsQualifiedName(string(f)))...)
	}
	return errs
}

// NamespaceUpdate accepts every change: fields that must not change are reset before.
func NamespaceUpdate(_, _ *corev1.Namespace) field.ErrorList { return nil }

// NamespaceStatusUpdate checks a write of the status: only a namespace that is being deleted may be Terminating.
func NamespaceStatusUpdate(ns, _ *corev1.Namespace) field.ErrorList {
	path := field.NewPath("status", "phase")
	errs := oneOf(path, ns.Status.Phase, corev1.NamespaceActive, corev1.NamespaceTerminating)
	switch {
	case ns.DeletionTimestamp == nil && ns.Status.Phase == corev1.NamespaceTerminating:
		errs = append(errs, field.Invalid(path, ns.Status.Phase, "may only be 'Terminating' if `deletionTimestamp` is not empty"))
	case ns.DeletionTimestamp != nil && ns.Status.Phase == corev1.NamespaceActive:
		errs = append(errs, field.Invalid(path, ns.Status.Phase, "may only be 'Active' if `deletionTimestamp` is empty"))
	}
	return errs
}

// Lease checks a lease.
func Lease(l *coordinationv1.Lease) field.ErrorList {
	path := field.NewPath("spec")
	var errs field.ErrorList
	if d := l.Spec.LeaseDurationSeconds; d != nil && *d <= 0 {
		errs = append(errs, field.Invalid(path.Child("leaseDurationSeconds"), *d, "must be greater than 0"))
	}
	if t := l.Spec.LeaseTransitions; t != nil {
		errs = append(errs, nonNegative(path.Child("leaseTransitions"), *t)...)
	}
	if h := l.Spec.HolderIdentity; h != nil {
		errs = append(errs, required(path.Child("holderIdentity"), *h)...)
	}
	return errs
}

// LeaseUpdate accepts every change: any holder may follow any other.
func LeaseUpdate(_, _ *coordinationv1.Lease) field.ErrorList { return nil }

// ServiceAccount checks a service account.
func ServiceAccount(sa *corev1.ServiceAccount) field.ErrorList {
	var errs field.ErrorList
	for i, ref := range sa.ImagePullSecrets {
		errs = append(errs, required(field.NewPath("imagePullSecrets").Index(i).Child("name"), ref.Name)...)
	}
	return errs
}

// Event checks an event. It must be in the namespace of the object that it is about.
func Event(e *corev1.Event) field.ErrorList {
	var errs field.ErrorList
	about := e.InvolvedObject.Namespace
	if about != e.Namespace && (about != "" || e.Namespace != "default" && e.Namespace != "kube-system") {
		errs = append(errs, field.Invalid(field.NewPath("involvedObject", "namespace"), about, "does not match event.namespace"))
	}
	if !e.EventTime.IsZero() { // written through the newer API, which has more rules
		errs = append(errs, required(field.NewPath("reportingComponent"), e.ReportingController)...)
		if e.ReportingController != "" {
			errs = append(errs, say(field.NewPath("reportingComponent"), e.ReportingController, validation.IsQualifiedName(e.ReportingController))...)
		}
		errs = append(errs, required(field.NewPath("reportingInstance"), e.ReportingInstance)...)
		errs = append(errs, required(field.NewPath("action"), e.Action)...)
		errs = append(errs, required(field.NewPath("reason"), e.Reason)...)
		errs = append(errs, oneOf(field.NewPath("type"), e.Type, corev1.EventTypeNormal, corev1.EventTypeWarning)...)
		const maxMessage = 1024
		if len(e.Message) > maxMessage {
			errs = append(errs, field.TooLong(field.NewPath("message"), "", maxMessage))
		}
	}
	return append(errs, apivalidation.ValidateNonnegativeField(int64(e.Count), field.NewPath("count"))...)
}
