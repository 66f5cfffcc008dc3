package kubelet

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	"minik8s/internal/api/podspec"
	"minik8s/internal/kubelet/cri"
	"minik8s/internal/kubelet/plan"
	"minik8s/internal/kubelet/podconfig"
	"minik8s/internal/kubelet/probe"
)

// maxStartDelay bounds the delay between tries to make or start a container.
const maxStartDelay = 5 * time.Minute

// doStart creates the container of a and starts it, and runs its postStart hook.
func (w *worker) doStart(a plan.Action, pod *corev1.Pod, view cri.Pod) func(context.Context) (outcome, error) {
	var prev *cri.Container
	if n := plan.Newest(view, a.Container); n != nil {
		c := *n
		prev = &c
	}
	hook := postStartOf(pod, a.Container)
	began := func(w *worker) {
		cm := w.state.Container(a.Container)
		cm.ImagePresent = false
		cm.Started(prev, w.k.now())
	}
	return func(ctx context.Context) (outcome, error) {
		id, err := w.createAndStart(ctx, a, pod, view)
		var failed *cri.StartError
		switch {
		case errors.Is(err, cri.ErrImageNotFound): // it was damaged, or removed by others
			return func(w *worker) { w.state.Container(a.Container).ImagePresent = false }, err
		case errors.As(err, &failed): // it counts as a container that has run and exited
			w.containerEventOf(pod, a.Container, corev1.EventTypeWarning, "Failed", "Error: %s", failed.Message)
			return began, nil
		case err != nil:
			return nil, err
		}
		w.containerEventOf(pod, a.Container, corev1.EventTypeNormal, "Started", "Started container %s", a.Container)
		if hook == nil {
			return began, nil
		}
		target := probe.Target{Runtime: w.k.runtime, ID: id, IP: addressOf(view.Sandbox), Spec: podspec.Container(pod, a.Container)}
		hookFailed := w.runPostStart(ctx, hook, target, pod)
		return func(w *worker) {
			began(w)
			if hookFailed != nil {
				hookFailed(w)
			}
		}, nil
	}
}

// createAndStart makes the container of a and starts it, within the start limit. The error is a *cri.StartError if
// the container is there and its command could not be run.
func (w *worker) createAndStart(ctx context.Context, a plan.Action, pod *corev1.Pod, view cri.Pod) (id string, err error) {
	leave, err := w.k.startLimit.acquire(ctx, w.ending)
	if err != nil {
		return "", err
	}
	defer leave()
	ctx, cancel := context.WithTimeout(ctx, actionTimeout)
	defer cancel()
	if id, err = w.create(ctx, a, pod, view); err != nil {
		return "", err
	}
	if view.Sandbox != nil {
		w.k.cfg.Policies.Admit(ctx, pod, view.Sandbox.Addresses)
	}
	err = w.k.runtime.StartContainer(ctx, id)
	var failed *cri.StartError
	if err == nil || errors.As(err, &failed) {
		return id, err
	}
	// It is half-made; the next try recreates it. If this removal fails, the runtime still lists the container, and
	// its removal is retried.
	_ = w.k.runtime.RemoveContainer(ctx, id)
	return "", &plan.ActionError{Reason: "RunContainerError", EventReason: "Failed", Event: "Error: " + err.Error(),
		Err: err, MinDelay: time.Second, MaxDelay: maxStartDelay}
}

// create makes the container of a.
func (w *worker) create(ctx context.Context, a plan.Action, pod *corev1.Pod, view cri.Pod) (string, error) {
	spec := podspec.Container(pod, a.Container)
	if spec == nil {
		return "", fmt.Errorf("the pod has no container %s", a.Container)
	}
	cfg, err := w.k.config.Container(ctx, pod, spec, a.Attempt, view.Sandbox, podconfig.Files{Log: w.k.logPath(pod, spec.Name, a.Attempt),
		TerminationMessage: w.k.terminationLog(view.Sandbox, string(pod.UID), spec.Name, a.Attempt)})
	if err != nil {
		return "", &plan.ActionError{Reason: "CreateContainerConfigError", EventReason: "Failed", Event: "Error: " + err.Error(),
			Err: err, MinDelay: time.Second, MaxDelay: time.Minute, WaitsForObject: onlyMissing(err)}
	}
	cfg.CgroupParent = w.k.cgroupOf(pod)
	cfg.TargetID, _ = plan.TargetID(pod, view, a.Container)
	id, err := w.k.runtime.CreateContainer(ctx, cfg)
	if err != nil {
		return "", &plan.ActionError{Reason: "CreateContainerError", EventReason: "Failed", Event: "Error: " + err.Error(),
			Err: err, MinDelay: time.Second, MaxDelay: maxStartDelay}
	}
	w.containerEventOf(pod, a.Container, corev1.EventTypeNormal, "Created", "Created container: %s", a.Container)
	return id, nil
}
