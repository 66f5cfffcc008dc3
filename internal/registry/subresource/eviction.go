package subresource

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"minik8s/internal/api"
	"minik8s/internal/registry"
	"minik8s/internal/store"
)

// Eviction deletes a pod with the grace period and preconditions of the eviction: pods/eviction. Before that it marks
// the pod as disrupted, so that a Job need not count this as a failure. The right to evict a pod does not require the
// right to delete it. The errors are 400 and those of a deletion.
func Eviction() registry.Subresource {
	return registry.Subresource{Action: &registry.Action{
		Body: func() runtime.Object { return &policyv1.Eviction{} },
		Do: func(ctx context.Context, o registry.Objects, q *registry.Request, body runtime.Object, opts registry.WriteOptions) (runtime.Object, error) {
			return nil, evict(ctx, o, q, body.(*policyv1.Eviction), opts)
		},
	}}
}

func evict(ctx context.Context, o registry.Objects, q *registry.Request, eviction *policyv1.Eviction, opts registry.WriteOptions) error {
	if eviction.Name != "" && eviction.Name != q.Name {
		return apierrors.NewBadRequest("metadata.name: " + eviction.Name + " does not match the name of the path, " + q.Name)
	}
	del := &metav1.DeleteOptions{}
	if eviction.DeleteOptions != nil {
		del = eviction.DeleteOptions.DeepCopy()
	}
	if opts.DryRun && !slices.Contains(del.DryRun, metav1.DryRunAll) {
		del.DryRun = append(del.DryRun, metav1.DryRunAll)
	}
	if err := registry.CheckDelete(del); err != nil { // before the pod is marked
		return err
	}
	if !slices.Contains(del.DryRun, metav1.DryRunAll) {
		if err := markEvicted(ctx, o, q, del); err != nil {
			return err
		}
	}
	_, _, err := o.Delete(ctx, registry.Own("delete", api.Pods, q.Namespace, q.Name, ""), del)
	return err
}

// markEvicted sets the condition DisruptionTarget. This makes a new version of the pod. If the deletion requires a
// resourceVersion, it is changed to that of the new version.
func markEvicted(ctx context.Context, o registry.Objects, q *registry.Request, del *metav1.DeleteOptions) error {
	status := registry.Own("update", api.Pods, q.Namespace, q.Name, api.StatusSubresource)
	// A pod on its way out frees room: it is marked also when the store is nearly full.
	marked, err := o.Modify(store.Essential(ctx), status, registry.WriteOptions{}, func(old api.Object) (api.Object, error) {
		if err := registry.CheckPreconditions(api.Pods, old, del.Preconditions); err != nil {
			return nil, err
		}
		pod := old.DeepCopyObject().(*corev1.Pod)
		setCondition(&pod.Status, corev1.PodCondition{Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue,
			Reason: "EvictionByEvictionAPI", Message: "Eviction API: evicting",
			ObservedGeneration: pod.Generation, LastTransitionTime: metav1.NewTime(o.Now())})
		return pod, nil
	})
	if err == nil && del.Preconditions != nil && del.Preconditions.ResourceVersion != nil {
		del.Preconditions.ResourceVersion = new(marked.GetResourceVersion())
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
