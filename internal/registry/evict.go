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

// Evict deletes a pod, by the grace and preconditions that the eviction gives, and says on it first that it
// was disrupted: a Job need not count that as a failure. Who may evict a pod need not be allowed to delete it.
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
	if _, _, err := policyFinalizer(del); err != nil { // before anything is said on the pod
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

// markEvicted sets the condition DisruptionTarget. As that makes a new version of the pod, it is that version
// which the deletion then asks for, if it asked for one at all.
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

// setCondition puts a condition in place of the one of its type, and keeps the time if its status was so before.
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
