package kubelet

import (
	"maps"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"minik8s/internal/api/podspec"
	"minik8s/internal/kubelet/plan"
)

// admission counts what the pods of this node request, so that no more are admitted than fit. The scheduler ensures
// that, except for a pod that names its node itself, or is bound at the same time as such a pod; those are rejected
// here.
type admission struct {
	allocatable func() corev1.ResourceList

	mu     sync.Mutex
	claims map[types.UID]plan.Claim // of the admitted pods
}

func (a *admission) reset() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.claims = map[types.UID]plan.Claim{}
}

// admit admits a pod and counts it, or returns why it does not fit. A pod that was started in an earlier run of the
// daemon (isNew is false) is always admitted.
func (a *admission) admit(pod *corev1.Pod, isNew bool) *plan.Rejection {
	if podspec.Finished(pod.Status.Phase) {
		return nil
	}
	c := plan.ClaimOf(pod)
	a.mu.Lock()
	defer a.mu.Unlock()
	if isNew {
		if v := plan.Exceeds(c, maps.Values(a.claims), a.allocatable()); v != nil {
			return v
		}
	}
	a.claims[pod.UID] = c
	return nil
}

// release stops counting a pod.
func (a *admission) release(uid types.UID) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.claims, uid)
}
