package defaults

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
)

// Namespace sets a namespace's name label, which selectors use, its phase, and the finalizer that empties it on
// deletion. If the name is still to be generated, the label is set later.
func Namespace(ns *corev1.Namespace) {
	if ns.Name != "" && ns.Labels[corev1.LabelMetadataName] != ns.Name {
		if ns.Labels == nil {
			ns.Labels = map[string]string{}
		}
		ns.Labels[corev1.LabelMetadataName] = ns.Name
	}
	// The finalizer of a namespace that is being deleted may already have been removed, and must not come back.
	if ns.DeletionTimestamp == nil && !slices.Contains(ns.Spec.Finalizers, corev1.FinalizerKubernetes) {
		ns.Spec.Finalizers = append(slices.Clone(ns.Spec.Finalizers), corev1.FinalizerKubernetes)
	}
	if ns.Status.Phase == "" {
		ns.Status.Phase = corev1.NamespaceActive
	}
}

// PriorityClass allows preemption for pods of the class, unless it is set otherwise.
func PriorityClass(pc *schedulingv1.PriorityClass) {
	if pc.PreemptionPolicy == nil {
		pc.PreemptionPolicy = new(corev1.PreemptLowerPriority)
	}
}

// Node makes podCIDR and podCIDRs agree, and sets allocatable to the whole capacity, unless it is set otherwise.
func Node(node *corev1.Node) {
	switch {
	case node.Spec.PodCIDR != "" && len(node.Spec.PodCIDRs) == 0:
		node.Spec.PodCIDRs = []string{node.Spec.PodCIDR}
	case node.Spec.PodCIDR == "" && len(node.Spec.PodCIDRs) > 0:
		node.Spec.PodCIDR = node.Spec.PodCIDRs[0]
	}
	if node.Status.Allocatable == nil && node.Status.Capacity != nil {
		node.Status.Allocatable = node.Status.Capacity.DeepCopy()
	}
}

// Secret sets the type of a secret, and moves stringData, which can only be written, into data.
func Secret(s *corev1.Secret) {
	if s.Type == "" {
		s.Type = corev1.SecretTypeOpaque
	}
	if len(s.StringData) > 0 && s.Data == nil {
		s.Data = map[string][]byte{}
	}
	for key, value := range s.StringData {
		s.Data[key] = []byte(value)
	}
	s.StringData = nil
}
