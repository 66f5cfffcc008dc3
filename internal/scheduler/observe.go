package scheduler

import (
	"context"

	corev1 "k8s.io/api/core/v1"

	"minik8s/internal/api/minik8s"
	"minik8s/internal/scheduler/plan"
)

// clusterEvent is one change for the deciding goroutine. One of the groups of fields is set.
type clusterEvent struct {
	oldPod, pod             *corev1.Pod
	oldNode, node           *corev1.Node
	oldNamespace, namespace *corev1.Namespace
	oldConfig, config       *minik8s.ClusterConfig
	usage                   *nodeUsage

	unbound    *corev1.Pod // its binding to the node "from" failed
	from       string
	found      *corev1.Pod // as read after that; nil: deleted
	unreported *corev1.Pod // the reason could not be written to its status
	synced     bool        // all pods of the first list have been queued
}

// changes sums up what happened since parked pods were last looked at.
type changes struct {
	// improved are the nodes that may now accept a pod that they refused before.
	improved map[string]struct{}
	nodes    plan.Change // of any node
	// A pod was placed on a node or removed from one; a pod's labels changed; a node was removed; a namespace's
	// labels changed.
	placed, removed, relabelled, nodeRemoved, namespaces bool
}

func (n *changes) clear() { *n = changes{improved: map[string]struct{}{}} }

func (n *changes) none() bool {
	return len(n.improved) == 0 && !n.placed && !n.removed && !n.relabelled && !n.nodeRemoved && !n.namespaces
}

// mayHelp reports whether a refusal that depended on other pods may be out of date. A removed pod can help affinity,
// too: a pod with affinity to its own kind may then be the first of that kind.
func (n *changes) mayHelp(causes plan.Cause) bool {
	moved := n.nodes&(plan.Added|plan.Labelled) != 0
	return causes&plan.BySpread != 0 && (n.placed || n.removed || n.relabelled || n.nodeRemoved || moved || n.nodes&plan.Opened != 0) ||
		causes&plan.ByAffinity != 0 && (n.placed || n.removed || n.relabelled || n.namespaces || moved) ||
		causes&plan.ByAntiAffinity != 0 && (n.removed || n.relabelled || n.namespaces || moved)
}

// enqueue hands an event to the deciding goroutine.
func (s *Scheduler) enqueue(e clusterEvent) {
	s.mu.Lock()
	s.pending = append(s.pending, e)
	s.mu.Unlock()
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// read applies all pending events, and wakes the parked pods that they may help.
func (s *Scheduler) read(ctx context.Context) {
	s.mu.Lock()
	pending := s.pending
	s.pending = nil
	s.mu.Unlock()
	for i := range pending {
		s.apply(ctx, &pending[i])
	}
	if s.changes.none() {
		return
	}
	if len(s.queue.parked) > 0 {
		now := s.now()
		// Nodes are seldom added, removed or uncordoned, and a waiting pod's status counts them. So the pod is
		// decided again even if it still fits nowhere: its status stays true.
		counted := s.changes.nodeRemoved || s.changes.nodes&(plan.Added|plan.Opened) != 0
		for _, e := range s.queue.parked {
			if counted || s.changes.mayHelp(e.causes) || s.allowed(e) {
				s.queue.wake(e, now)
			}
		}
	}
	s.changes.clear()
}

// allowed reports whether one of the nodes that changed would take a parked pod.
func (s *Scheduler) allowed(e *entry) bool {
	for name := range s.changes.improved {
		if s.cluster.Allows(e.pod, name) {
			return true
		}
	}
	return false
}

func (s *Scheduler) apply(ctx context.Context, n *clusterEvent) {
	switch {
	case n.pod != nil || n.oldPod != nil:
		s.podChanged(ctx, n.oldPod, n.pod)
	case n.node != nil:
		if change := s.cluster.SetNode(n.node); change != 0 {
			s.changes.nodes |= change
			s.changes.improved[n.node.Name] = struct{}{}
		}
	case n.oldNode != nil:
		s.cluster.RemoveNode(n.oldNode.Name)
		s.changes.nodeRemoved = true
	case n.namespace != nil:
		if s.cluster.SetNamespace(n.namespace.Name, n.namespace.Labels) {
			s.changes.namespaces = true
		}
	case n.oldNamespace != nil:
		s.cluster.RemoveNamespace(n.oldNamespace.Name)
	case n.config != nil || n.oldConfig != nil:
		s.configChanged(ctx, n.oldConfig, n.config)
	case n.usage != nil:
		s.cluster.SetUsage(n.usage.node, n.usage.CPUMillis, n.usage.MemoryBytes)
	case n.unbound != nil:
		s.unbound(ctx, n.unbound, n.found, n.from)
	case n.unreported != nil:
		s.writeFailed(ctx, n.unreported)
	case n.synced:
		s.synced = true
	}
}

func finished(p *corev1.Pod) bool {
	return p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed
}

// ours reports whether this scheduler has to find the pod a node.
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
			s.changes.improved[was] = struct{}{}
			s.changes.relabelled = true
		}
		s.cluster.Place(s.cluster.Pod(now), now.Spec.NodeName)
		s.changes.placed = true
	case s.cluster.Where(now.UID) != "":
		// Its binding is being written. If that fails, the informer has the pod's newest state.
	case !ours(now):
		s.queue.drop(now.UID)
	default:
		if e := s.queue.add(s.cluster.Pod(now)); e.writeFailed && e.place == parked {
			s.report(ctx, e, e.reported)
		}
	}
}

// forget drops a pod that no longer uses resources of a node.
func (s *Scheduler) forget(p *corev1.Pod) {
	s.queue.drop(p.UID)
	if node, ok := s.cluster.Remove(p.UID); ok {
		s.changes.improved[node] = struct{}{}
		s.changes.removed = true
	}
}

// unbound takes a pod off the node after its binding failed. found, the pod as read after the failure, shows whether
// it was bound all the same, or by another client; then it stays. The informer knows whether the pod was deleted
// since.
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
	s.changes.improved[from] = struct{}{}
	s.changes.removed = true
	if !ours(now) {
		s.queue.drop(pod.UID)
		return
	}
	if e := s.queue.all[pod.UID]; e != nil && e.place == unqueued {
		e.pod = s.cluster.Pod(now)
		s.queue.backOff(e, s.now())
	}
}

// writeFailed records that the reason why a pod has no node could not be written to its status. If the pod has
// changed in the meantime, the write is tried again now; otherwise at the pod's next change.
func (s *Scheduler) writeFailed(ctx context.Context, pod *corev1.Pod) {
	e := s.queue.all[pod.UID]
	if e == nil {
		return
	}
	e.writeFailed = true
	if e.place == parked && e.pod.Obj.ResourceVersion != pod.ResourceVersion {
		s.report(ctx, e, e.reported)
	}
}
