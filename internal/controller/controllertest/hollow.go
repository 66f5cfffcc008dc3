package controllertest

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"minik8s/internal/api"
	"minik8s/internal/client"
)

func conflict(err error) bool { return apierrors.IsConflict(err) }

// Hollow adds nodes that run nothing. They bind pods in turn, or where their affinity says, report them Running and
// Ready, and finish their deletion. Where end returns a phase for a pod, the pod is reported as ended in that phase.
// end may be nil.
func (c *Cluster) Hollow(end func(*corev1.Pod) corev1.PodPhase, nodes ...string) {
	c.t.Helper()
	c.hollow(end, true, corev1.ResourceList{corev1.ResourcePods: resource.MustParse("1000")}, nodes)
}

// HollowUnbound is Hollow for tests with a scheduler, which alone binds pods. allocatable is what each node has.
func (c *Cluster) HollowUnbound(allocatable corev1.ResourceList, nodes ...string) {
	c.t.Helper()
	c.hollow(nil, false, allocatable, nodes)
}

func (c *Cluster) hollow(end func(*corev1.Pod) corev1.PodPhase, bind bool, allocatable corev1.ResourceList, nodes []string) {
	c.t.Helper()
	for _, name := range nodes {
		Create(c, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{corev1.LabelHostname: name}},
			Status: corev1.NodeStatus{Capacity: allocatable, Allocatable: allocatable,
				Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}}})
	}
	c.Start(func(ctx context.Context, ready func()) error {
		w, err := c.Admin().Watch(ctx, api.Pods, client.WatchOptions{})
		if err != nil {
			return err
		}
		ready()
		turn := 0
		for e := range w.Events() {
			if e.Type != client.Added && e.Type != client.Modified {
				continue
			}
			if p := e.Object.(*corev1.Pod); !bind && p.Spec.NodeName == "" && p.DeletionTimestamp == nil {
				continue
			}
			turn++
			// A conflict means that another writer changed the pod, so another event follows.
			c.serve(ctx, e.Object.(*corev1.Pod), nodes[turn%len(nodes)], end) //nolint:errcheck // see above
		}
		return nil
	})
}

func (c *Cluster) serve(ctx context.Context, p *corev1.Pod, node string, end func(*corev1.Pod) corev1.PodPhase) error {
	key := client.KeyOf(p)
	switch {
	case p.DeletionTimestamp != nil:
		if g := p.DeletionGracePeriodSeconds; g == nil || *g > 0 {
			_, err := c.Admin().Delete(ctx, key, &metav1.DeleteOptions{GracePeriodSeconds: new(int64),
				Preconditions: metav1.NewUIDPreconditions(string(p.UID))})
			return err
		}
		return nil
	case p.Spec.NodeName == "":
		return c.Admin().Bind(ctx, p.Namespace, p.Name, p.UID, chosen(p, node))
	}
	upd := p.DeepCopy()
	now := metav1.NewTime(time.Now().Truncate(time.Second))
	phase := corev1.PodPhase("")
	if end != nil {
		phase = end(p)
	}
	switch {
	case p.Status.Phase == corev1.PodPending:
		upd.Status.Phase, upd.Status.StartTime = corev1.PodRunning, &now
		upd.Status.Conditions = append(upd.Status.Conditions, corev1.PodCondition{Type: corev1.PodReady,
			Status: corev1.ConditionTrue, LastTransitionTime: now})
	case p.Status.Phase == corev1.PodRunning && phase != "":
		code := int32(0)
		if phase == corev1.PodFailed {
			code = 1
		}
		upd.Status.Phase = phase
		upd.Status.Conditions = nil
		upd.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: p.Spec.Containers[0].Name, Image: p.Spec.Containers[0].Image,
			State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: code, FinishedAt: now}}}}
	default:
		return nil
	}
	_, err := c.Admin().Update(ctx, upd, client.WriteOptions{Subresource: "status"})
	return err
}

// chosen is the node that a pod's affinity names, or else node.
func chosen(p *corev1.Pod, node string) string {
	a := p.Spec.Affinity
	if a == nil || a.NodeAffinity == nil || a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution == nil {
		return node
	}
	for _, t := range a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms {
		if len(t.MatchFields) > 0 {
			return t.MatchFields[0].Values[0]
		}
	}
	return node
}
