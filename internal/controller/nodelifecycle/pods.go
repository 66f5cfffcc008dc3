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

// unready says on the pods of a node that is not ready that they are not either, so that what counts ready
// pods stops counting these. Of a silent node it does so whenever it looks; where a kubelet still speaks, once
// in each spell of not being ready, for that kubelet may know better and says so: they would contradict each
// other without end. What failed, by another writer's coming first too, is tried again.
func (n *Controller) unready(ctx context.Context, node *corev1.Node, p plan) error {
	if !p.unready {
		n.told.forget(node.Name)
		return nil
	}
	spell := condition(node, corev1.NodeReady).LastTransitionTime
	if !p.silent && n.told.of(node.Name, spell) {
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
		failed = append(failed, ignoreGone(err))
	}
	err = errors.Join(failed...)
	if err == nil {
		n.told.add(node.Name, spell)
	}
	return err
}

// notReady is the pod with its Ready condition taken away; nil if it has none that is true.
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

// spells are the times since which nodes were not ready when all their pods were last told so. It saves
// work and quarrels, and nothing is lost with it.
type spells struct {
	mu    sync.Mutex
	since map[string]metav1.Time
}

func (s *spells) of(node string, since metav1.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	known, ok := s.since[node]
	return ok && known.Equal(&since)
}

func (s *spells) add(node string, since metav1.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.since == nil {
		s.since = map[string]metav1.Time{}
	}
	s.since[node] = since
}

func (s *spells) forget(node string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.since, node)
}
