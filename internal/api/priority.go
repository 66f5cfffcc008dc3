package api

import (
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The priority classes that every cluster has, and the highest value for classes that users create.
const (
	SystemNodeCritical    = "system-node-critical"
	SystemClusterCritical = "system-cluster-critical"
	HighestUserPriority   = int32(1_000_000_000)
)

// SystemPriorityClasses returns the built-in classes, ordered by value.
func SystemPriorityClasses() []*schedulingv1.PriorityClass {
	return []*schedulingv1.PriorityClass{{
		ObjectMeta:  metav1.ObjectMeta{Name: SystemNodeCritical},
		Value:       2*HighestUserPriority + 1000,
		Description: "Used for system critical pods that must not be moved from their current node.",
	}, {
		ObjectMeta:  metav1.ObjectMeta{Name: SystemClusterCritical},
		Value:       2 * HighestUserPriority,
		Description: "Used for system critical pods that must run in the cluster, but can be moved to another node if necessary.",
	}}
}
