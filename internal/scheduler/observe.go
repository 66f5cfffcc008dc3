package scheduler

import (
	"context"

	corev1 "k8s.io/api/core/v1"

	"minik8s/internal/api/minik8s"
	"minik8s/internal/scheduler/plan"
)

// note is one piece of news for the deciding goroutine: one of the groups of fields is set.
type note struct {
	oldPod, pod             *corev1.Pod
	oldNode, node           *corev1.Node
	oldNamespace, namespace *corev1.Namespace
	oldConfig, config       *minik8s.ClusterConfig
	usage                   *report

	unbound *corev1.Pod // its binding to from failed
	from    string
	found   *corev1.Pod // as read after that; nil: it is gone
	untold  *corev1.Pod // what was to be said on it is not
	synced  bool        // all pods of the first list have been noted
}

// news is what happened since parked pods were last looked at.
type news struct {
	// better are nodes that may take now what they refused before.
	better map[string]struct{}
	nodes  plan.Change // of any node
	// placed and went are pods that came to a node or left it, relabelled those that count differently
	// now, nodeWent a node, spaces a namespace's labels.
	placed, went, relabelled, nodeWent, spaces bool
}

func (n *news) clear() { *n = news{better: map[string]struct{}{}} }

func (n *news) none() bool {
	return len(n.better) == 0 && !n.placed && !n.went && !n.relabelled && !n.nodeWent && !n.spaces
}

// helps says whether a refusal that depended on other pods may be another one now. Affinity is helped by
// pods that go, too: one that asks for its own kind may become the first of it.
func (n *news) helps(causes plan.Cause) bool {
	moved := n.nodes&(plan.Added|plan.Labelled) != 0
	return causes&plan.BySpread != 0 && (n.placed || n.went || n.relabelled || n.nodeWent || moved || n.nodes&plan.Opened != 0) ||
		causes&plan.ByAffinity != 0 && (n.placed || n.went || n.relabelled || n.spaces || moved) ||
		causes&plan.ByAntiAffinity != 0 && (n.went || n.relabelled || n.spaces || moved)
}

// note hands news to the deciding goroutine.
func (s *Scheduler) note(n note) {
	s.mu.Lock()
	s.notes = append(s.notes, n)
	s.mu.Unlock()
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// read takes all notes, and wakes the parked pods that they may help.
func (s *Scheduler) read(ctx context.Context) {
	s.mu.Lock()
	notes := s.notes
	s.notes = nil
	s.mu.Unlock()
	for i := range notes {
		s.apply(ctx, &notes[i])
	}
	if s.news.none() {
		return
	}
	if len(s.queue.parked) > 0 {
		now := s.now()
		// Nodes that come, go or open are few, and what a waiting pod says counts them: it is decided again
		// even if it still fits nowhere, so that it says what is true.
		counted := s.news.nodeWent || s.news.nodes&(plan.Added|plan.Opened) != 0
		for _, e := range s.queue.parked {
			if counted || s.news.helps(e.causes) || s.allowed(e) {
				s.queue.wake(e, now)
			}
		}
	}
	s.news.clear()
}

// allowed says whether one of the nodes that changed would take a parked pod.
func (s *Scheduler) allowed(e *entry) bool {
	for name := range s.news.better {
		if s.cluster.Allows(e.pod, name) {
			return true
		}
	}
	return false
}

func (s *Scheduler) apply(ctx context.Context, n *note) {
	switch {
	case n.pod != nil || n.oldPod != nil:
		s.podChanged(ctx, n.oldPod, n.pod)
	case n.node != nil:
		if change := s.cluster.SetNode(n.node); change != 0 {
			s.news.nodes |= change
			s.news.better[n.node.Name] = struct{}{}
		}
	case n.oldNode != nil:
		s.cluster.RemoveNode(n.oldNode.Name)
		s.news.nodeWent = true
	case n.namespace != nil:
		if s.cluster.SetNamespace(n.namespace.Name, n.namespace.Labels) {
			s.news.spaces = true
		}
	case n.oldNamespace != nil:
		s.cluster.RemoveNamespace(n.oldNamespace.Name)
	case n.config != nil || n.oldConfig != nil:
		s.configChanged(ctx, n.oldConfig, n.config)
	case n.usage != nil:
		s.cluster.SetUsage(n.usage.node, n.usage.cpuMillis, n.usage.memoryBytes)
	case n.unbound != nil:
		s.unbound(ctx, n.unbound, n.found, n.from)
	case n.untold != nil:
		s.untold(ctx, n.untold)
	case n.synced:
		s.synced = true
	}
}

func finished(p *corev1.Pod) bool {
	return p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed
}

// ours says whether it is for us to find the pod a node.
func ours(p *corev1.Pod) bool {
	return p.Spec.NodeName == "" && p.DeletionTimestamp == nil && p.Spec.SchedulerName == Name &&
		len(p.Spec.SchedulingGates) == 0 && !finished(p)
}

func (s *Scheduler) podChanged(ctx context.Context, old, now *corev1.Pod) {
	switch {
	case now == nil:
		s.forget(old)
	case finished(now):
		s.forget(now)
	case now.Spec.NodeName != "":
		s.queue.drop(now.UID)
		if s.cluster.Refresh(now) {
			return
		}
		if was := s.cluster.Where(now.UID); was != "" {
			s.news.better[was] = struct{}{}
			s.news.relabelled = true
		}
		s.cluster.Place(s.cluster.Pod(now), now.Spec.NodeName)
		s.news.placed = true
	case s.cluster.Where(now.UID) != "":
		// Its binding is on the way. If that fails, the informer knows its newest state.
	case !ours(now):
		s.queue.drop(now.UID)
	default:
		if e := s.queue.add(s.cluster.Pod(now)); e.untold && e.place == parked {
			s.tell(ctx, e, e.told)
		}
	}
}

// forget is for a pod that takes nothing any more.
func (s *Scheduler) forget(p *corev1.Pod) {
	s.queue.drop(p.UID)
	if node, ok := s.cluster.Remove(p.UID); ok {
		s.news.better[node] = struct{}{}
		s.news.went = true
	}
}

// unbound takes a pod off the node to which it could not be bound, unless it was bound all the same, or by
// somebody else: found, which was read after the failure, knows. Only the informer knows better whether
// it has gone since.
func (s *Scheduler) unbound(ctx context.Context, pod, found *corev1.Pod, from string) {
	now, ok := s.pods.Get(pod.Namespace, pod.Name)
	if ok && found != nil && found.Spec.NodeName != "" && now.UID == found.UID {
		now = found
	}
	switch {
	case !ok || found == nil || now.UID != pod.UID:
		s.forget(pod)
		return
	case now.Spec.NodeName != "" || finished(now):
		s.podChanged(ctx, pod, now)
		return
	case s.cluster.Where(pod.UID) != from:
		return
	}
	s.cluster.Remove(pod.UID)
	s.news.better[from] = struct{}{}
	s.news.went = true
	if !ours(now) {
		s.queue.drop(pod.UID)
		return
	}
	if e := s.queue.all[pod.UID]; e != nil && e.place == gone {
		e.pod = s.cluster.Pod(now)
		s.queue.pause(e, s.now())
	}
}

// untold remembers that a pod does not say why it has no node, and says it at once if the pod has changed
// in the meantime; otherwise its next change will be the occasion.
func (s *Scheduler) untold(ctx context.Context, pod *corev1.Pod) {
	e := s.queue.all[pod.UID]
	if e == nil {
		return
	}
	e.untold = true
	if e.place == parked && e.pod.Obj.ResourceVersion != pod.ResourceVersion {
		s.tell(ctx, e, e.told)
	}
}
