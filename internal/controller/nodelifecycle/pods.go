package nodelifecycle

import (
	"context"
	"errors"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"

	"minik8s/internal/api"
	"minik8s/internal/client"
)

// markPodsNotReady marks the pods of a node that is not ready as not ready, so that they no longer count as ready.
// For a silent node it does so at every reconcile. Where the kubelet still sends heartbeats it does so once per
// period of not being ready: that kubelet may know better and mark its pods ready again, and the two would undo each
// other's writes for ever. Failed writes, conflicts too, are retried.
func (n *Controller) markPodsNotReady(ctx context.Context, node *corev1.Node, p plan) error {
	if !p.unready {
		n.marked.forget(node.Name)
		return nil
	}
	since := condition(node, corev1.NodeReady).LastTransitionTime
	if !p.silent && n.marked.of(node.Name, since) {
		return nil
	}
	pods, _, err := client.All[*corev1.Pod](ctx, n.client, api.Pods, client.ListOptions{Fields: fields.OneTermEqualSelector("spec.nodeName", node.Name)})
	if err != nil {
		return err
	}
	var failed []error
	for _, pod := range pods {
		upd := n.notReady(pod)
		if upd == nil {
			continue
		}
		_, err := n.client.Update(ctx, upd, client.WriteOptions{Subresource: "status"})
		failed = append(failed, ignoreNotFound(err))
	}
	err = errors.Join(failed...)
	if err == nil {
		n.marked.add(node.Name, since)
	}
	return err
}

// notReady is the pod with its Ready condition set to False; nil if it is not True.
func (n *Controller) notReady(pod *corev1.Pod) *corev1.Pod {
	for i, c := range pod.Status.Conditions {
		if c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue {
			upd := pod.DeepCopy()
			now := &upd.Status.Conditions[i]
			now.Status, now.Reason, now.Message = corev1.ConditionFalse, "NodeNotReady", "Node is not ready"
			now.LastTransitionTime = metav1.NewTime(n.now())
			return upd
		}
	}
	return nil
}

// unreadySince has, by node, the start of the period of not being ready for which all its pods have been marked. It
// saves writes, and may be lost.
type unreadySince struct {
	mu    sync.Mutex
	since map[string]metav1.Time
}

func (s *unreadySince) of(node string, since metav1.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	known, ok := s.since[node]
	return ok && known.Equal(&since)
}

func (s *unreadySince) add(node string, since metav1.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.since == nil {
		s.since = map[string]metav1.Time{}
	}
	s.since[node] = since
}

func (s *unreadySince) forget(node string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.since, node)
}
