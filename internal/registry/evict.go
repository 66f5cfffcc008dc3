package registry

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"minik8s/internal/api"
)

// Evict deletes a pod with the grace period and preconditions of the eviction. Before that it marks the pod as
// disrupted, so that a Job need not count this as a failure. The right to evict a pod does not require the right to
// delete it. The errors are 400 and those of Delete.
func (r *Registry) Evict(ctx context.Context, q *Request, eviction *policyv1.Eviction, opts WriteOptions) error {
	if err := r.authorizeAs(ctx, "create", q); err != nil {
		return err
	}
	namespace, name := q.Namespace, q.Name
	if eviction.Name != "" && eviction.Name != name {
		return apierrors.NewBadRequest("metadata.name: " + eviction.Name + " does not match the name of the path, " + name)
	}
	del := &metav1.DeleteOptions{}
	if eviction.DeleteOptions != nil {
		del = eviction.DeleteOptions.DeepCopy()
	}
	if opts.DryRun && !slices.Contains(del.DryRun, metav1.DryRunAll) {
		del.DryRun = append(del.DryRun, metav1.DryRunAll)
	}
	if _, _, err := policyFinalizer(del); err != nil { // check this before the pod is marked
		return err
	}
	if !slices.Contains(del.DryRun, metav1.DryRunAll) {
		if err := r.markEvicted(ctx, namespace, name, del); err != nil {
			return err
		}
	}
	_, _, err := r.Delete(ctx, own("delete", api.Pods, namespace, name), del)
	return err
}

// markEvicted sets the condition DisruptionTarget. This makes a new version of the pod. If the deletion requires a
// resourceVersion, it is changed to that of the new version.
func (r *Registry) markEvicted(ctx context.Context, namespace, name string, del *metav1.DeleteOptions) error {
	q := own("update", api.Pods, namespace, name).below("status")
	e, err := r.modify(ctx, q, WriteOptions{}, true, func(old api.Object) (api.Object, error) {
		if err := preconditions(api.Pods, old, del.Preconditions); err != nil {
			return nil, err
		}
		pod := old.DeepCopyObject().(*corev1.Pod)
		setCondition(&pod.Status, corev1.PodCondition{Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue,
			Reason: "EvictionByEvictionAPI", Message: "Eviction API: evicting",
			ObservedGeneration: pod.Generation, LastTransitionTime: metav1.NewTime(r.now())})
		return pod, nil
	})
	if err == nil && del.Preconditions != nil && del.Preconditions.ResourceVersion != nil {
		now := e.Object().GetResourceVersion()
		del.Preconditions.ResourceVersion = &now
	}
	return err
}

// setCondition replaces the condition of the same type, and keeps its transition time if the status is unchanged.
func setCondition(st *corev1.PodStatus, c corev1.PodCondition) {
	i := slices.IndexFunc(st.Conditions, func(have corev1.PodCondition) bool { return have.Type == c.Type })
	if i < 0 {
		st.Conditions = append(st.Conditions, c)
		return
	}
	if st.Conditions[i].Status == c.Status {
		c.LastTransitionTime = st.Conditions[i].LastTransitionTime
	}
	st.Conditions[i] = c
}
