package kubelet

import (
	"context"
	"errors"
	"time"

	corev1 "k8s.io/api/core/v1"

	"minik8s/internal/api/podspec"
	"minik8s/internal/kubelet/cri"
	"minik8s/internal/kubelet/plan"
	"minik8s/internal/kubelet/probe"
)

// minStopGrace is the grace period that a container has after its preStop hook at least, even if the hook used all of
// it (as in Kubernetes, pkg/kubelet/kuberuntime).
const minStopGrace = 2 * time.Second

func postStartOf(pod *corev1.Pod, container string) *corev1.LifecycleHandler {
	if c := podspec.Container(pod, container); c != nil && c.Lifecycle != nil {
		return c.Lifecycle.PostStart
	}
	return nil
}

func preStopOf(pod *corev1.Pod, container string) *corev1.LifecycleHandler {
	if pod == nil {
		return nil
	}
	if c := podspec.Container(pod, container); c != nil && c.Lifecycle != nil {
		return c.Lifecycle.PreStop
	}
	return nil
}

// runPostStart carries out the hook of a container that has just been started. If it fails, the
// container is killed. The hook of a pod that is to end is not waited for.
func (w *worker) runPostStart(ctx context.Context, hook *corev1.LifecycleHandler, t probe.Target, pod *corev1.Pod) outcome {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	left := make(chan struct{})
	defer close(left)
	go func() {
		select {
		case <-w.ending:
			cancel()
		case <-left:
		}
	}()
	err := probe.Call(ctx, t, hook)
	if err == nil || ctx.Err() != nil || errors.Is(err, cri.ErrNotRunning) {
		return nil
	}
	w.containerEventOf(pod, t.Spec.Name, corev1.EventTypeWarning, "FailedPostStartHook", "PostStartHook failed: %v", err)
	return func(w *worker) {
		w.state.HealthFor(t.ID).Kill = &plan.KillOrder{Why: "Container %s failed its postStart hook"}
	}
}

// doStop stops a container: it runs the preStop hook, once, and then stops with the rest of the grace period.
func (w *worker) doStop(a plan.Action, pod *corev1.Pod) func(context.Context) (outcome, error) {
	hook := preStopOf(pod, a.Container)
	var target probe.Target
	if h := w.state.Health[a.ID]; hook != nil && (a.Grace == 0 || h != nil && h.PreStopped) {
		hook = nil
	}
	if hook != nil {
		w.state.HealthFor(a.ID).PreStopped = true
		target = w.target(pod, a.Container, a.ID)
	}
	return func(ctx context.Context) (outcome, error) {
		ctx, cancel := context.WithTimeout(ctx, a.Grace+minStopGrace+actionTimeout)
		defer cancel()
		grace := a.Grace
		if hook != nil {
			grace = w.runPreStop(ctx, hook, target, pod, grace)
		}
		return nil, w.k.runtime.StopContainer(ctx, a.ID, grace)
	}
}

// runPreStop runs the hook within the grace period and returns the rest of it.
func (w *worker) runPreStop(ctx context.Context, hook *corev1.LifecycleHandler, t probe.Target, pod *corev1.Pod, grace time.Duration) time.Duration {
	own, cancel := context.WithTimeout(ctx, grace)
	defer cancel()
	began := w.k.now()
	err := probe.Call(own, t, hook)
	if err != nil && ctx.Err() == nil && !errors.Is(err, cri.ErrNotRunning) {
		w.containerEventOf(pod, t.Spec.Name, corev1.EventTypeWarning, "FailedPreStopHook", "PreStopHook failed: %v", err)
	}
	return max(grace-w.k.now().Sub(began), min(minStopGrace, grace))
}
