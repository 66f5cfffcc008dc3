package namespace

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"minik8s/internal/clock"
)

// healthy are the conditions while nothing is wrong.
var healthy = []corev1.NamespaceCondition{
	{Type: corev1.NamespaceDeletionDiscoveryFailure, Reason: "ResourcesDiscovered", Message: "All resources successfully discovered"},
	{Type: corev1.NamespaceDeletionGVParsingFailure, Reason: "ParsedGroupVersions", Message: "All legacy kube types successfully parsed"},
	{Type: corev1.NamespaceDeletionContentFailure, Reason: "ContentDeleted", Message: "All content successfully deleted, may be waiting on finalization"},
	{Type: corev1.NamespaceContentRemaining, Reason: "ContentRemoved", Message: "All content successfully removed"},
	{Type: corev1.NamespaceFinalizersRemaining, Reason: "ContentHasNoFinalizers", Message: "All content-preserving finalizers finished"},
}

// conditions are the conditions for what a round found, as Kubernetes words them
// (pkg/controller/namespace/deletion/status_condition_utils.go).
func conditions(left []remains, err error) []corev1.NamespaceCondition {
	out := slices.Clone(healthy)
	for i := range out {
		c := &out[i]
		c.Status = corev1.ConditionFalse
		switch c.Type {
		case corev1.NamespaceDeletionContentFailure:
			if err != nil {
				c.Status, c.Reason, c.Message = corev1.ConditionTrue, "ContentDeletionFailed",
					"Failed to delete all resource types, remaining: "+strings.ReplaceAll(err.Error(), "\n", ", ")
			}
		case corev1.NamespaceContentRemaining:
			if what := contents(left); what != "" {
				c.Status, c.Reason, c.Message = corev1.ConditionTrue, "SomeResourcesRemain", "Some resources are remaining: "+what
			}
		case corev1.NamespaceFinalizersRemaining:
			if what := finalizers(left); what != "" {
				c.Status, c.Reason, c.Message = corev1.ConditionTrue, "SomeFinalizersRemain",
					"Some content in the namespace has finalizers remaining: "+what
			}
		}
	}
	return out
}

// contents names the kinds that are left; "pods." is a kind of the group without a name.
func contents(left []remains) string {
	var parts []string
	for _, r := range left {
		parts = append(parts, fmt.Sprintf("%s.%s has %d resource instances", r.kind.Plural, r.kind.Group, r.count))
	}
	slices.Sort(parts)
	return strings.Join(parts, ", ")
}

// finalizers names those that hold something.
func finalizers(left []remains) string {
	total := map[string]int{}
	for _, r := range left {
		for f, n := range r.finalizers {
			total[f] += n
		}
	}
	var parts []string
	for f, n := range total {
		parts = append(parts, fmt.Sprintf("%s in %d resource instances", f, n))
	}
	slices.Sort(parts)
	return strings.Join(parts, ", ")
}

// merge updates conditions and reports whether anything changed. Conditions of other types stay.
func merge(status *corev1.NamespaceStatus, now []corev1.NamespaceCondition) bool {
	changed := false
	for _, c := range now {
		c.LastTransitionTime = metav1.NewTime(clock.Now())
		i := slices.IndexFunc(status.Conditions, func(old corev1.NamespaceCondition) bool { return old.Type == c.Type })
		if i < 0 {
			status.Conditions = append(status.Conditions, c)
			changed = true
			continue
		}
		old := &status.Conditions[i]
		if old.Status == c.Status && old.Reason == c.Reason && old.Message == c.Message {
			continue
		}
		if old.Status == c.Status {
			c.LastTransitionTime = old.LastTransitionTime
		}
		*old, changed = c, true
	}
	return changed
}
