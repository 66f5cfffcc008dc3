package defaults

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
)

// Namespace gives a namespace the label by which selectors find it, the finalizer that empties it when
// it is deleted, and its phase. A name that is still to be generated gets its label later.
func Namespace(ns *corev1.Namespace) {
	if ns.Name != "" && ns.Labels[corev1.LabelMetadataName] != ns.Name {
		if ns.Labels == nil {
			ns.Labels = map[string]string{}
		}
		ns.Labels[corev1.LabelMetadataName] = ns.Name
	}
	// One that is going has perhaps had its finalizer taken off already: it must not come back.
	if ns.DeletionTimestamp == nil && !slices.Contains(ns.Spec.Finalizers, corev1.FinalizerKubernetes) {
		ns.Spec.Finalizers = append(slices.Clone(ns.Spec.Finalizers), corev1.FinalizerKubernetes)
	}
	if ns.Status.Phase == "" {
		ns.Status.Phase = corev1.NamespaceActive
	}
}

// PriorityClass lets pods of a class take others' room, unless it says otherwise.
func PriorityClass(pc *schedulingv1.PriorityClass) {
	if pc.PreemptionPolicy == nil {
		pc.PreemptionPolicy = new(corev1.PreemptLowerPriority)
	}
}

// Node keeps podCIDR and podCIDRs alike and lets everything that a node has be allocated, unless it
// says otherwise.
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

// Secret gives a secret its type and moves stringData, which is for writing only, into data.
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
