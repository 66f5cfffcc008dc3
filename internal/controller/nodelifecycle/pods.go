package nodelifecycle

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"

	"minik8s/internal/api"
	"minik8s/internal/client"
)

// unready says on the pods of a silent node that nobody knows them to be ready, so that what counts ready
// pods stops counting these. The kubelet says otherwise when it is back.
func (n *Controller) unready(ctx context.Context, node string) error {
	pods, _, err := client.All[*corev1.Pod](ctx, n.client, api.Pods, client.ListOptions{Fields: fields.OneTermEqualSelector("spec.nodeName", node)})
	if err != nil {
		return err
	}
	for _, pod := range pods {
		upd := pod.DeepCopy()
		changed := false
		for i := range upd.Status.Conditions {
			c := &upd.Status.Conditions[i]
			if c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue {
				c.Status, c.Reason, c.Message = corev1.ConditionFalse, "NodeNotReady", "Node is not ready"
				c.LastTransitionTime = metav1.NewTime(n.now())
				changed = true
			}
		}
		if !changed {
			continue
		}
		_, err := n.client.Update(ctx, upd, client.WriteOptions{Subresource: "status"})
		if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
			return err
		}
	}
	return nil
}
