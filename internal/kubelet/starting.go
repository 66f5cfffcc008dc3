package kubelet

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	"minik8s/internal/kubelet/cri"
	"minik8s/internal/kubelet/probe"
)

// doStart creates the container of a and starts it.
func (w *worker) doStart(a action, pod *corev1.Pod, view cri.Pod) func(context.Context) (outcome, error) {
	var prev *cri.Container
	if n := newest(view, a.container); n != nil {
		c := *n
		prev = &c
	}
	hook := postStartOf(pod, a.container)
	return func(whole context.Context) (outcome, error) {
		ctx := whole
		leave, err := w.k.starts.enter(ctx, w.ending)
		if err != nil {
			return nil, err
		}
		defer leave()
		ctx, cancel := context.WithTimeout(ctx, actionTimeout)
		defer cancel()
		id, err := w.create(ctx, a, pod, view)
		if errors.Is(err, cri.ErrImageNotFound) { // it was damaged, or somebody has removed it
			return func(w *worker) { w.mem.container(a.container).image = false }, err
		}
		if err != nil {
			return nil, err
		}
		began := func(w *worker) {
			cm := w.mem.container(a.container)
			cm.image = false
			cm.restarted(prev, w.k.now())
		}
		err = w.k.runtime.StartContainer(ctx, id)
		var failed *cri.StartError
		switch {
		case err == nil:
			w.containerEventOf(pod, a.container, corev1.EventTypeNormal, "Started", "Started container %s", a.container)
			if hook == nil {
				return began, nil
			}
			leave()
			target := probe.Target{Runtime: w.k.runtime, ID: id, IP: addressOf(view.Sandbox), Spec: containerNamed(pod, a.container)}
			verdict := w.runPostStart(whole, hook, target, pod)
			return func(w *worker) {
				began(w)
				if verdict != nil {
					verdict(w)
				}
			}, nil
		case errors.As(err, &failed): // it counts as one that has run and exited
			w.containerEventOf(pod, a.container, corev1.EventTypeWarning, "Failed", "Error: %s", failed.Message)
			return began, nil
		}
		// It is half-made; the next try makes it anew. Should this fail too, the runtime still
		// lists it, and its removal is tried again.
		_ = w.k.runtime.RemoveContainer(ctx, id)
		return nil, &trouble{reason: "RunContainerError", eventReason: "Failed", event: "Error: " + err.Error(),
			err: err, lo: time.Second, hi: maxCrashBackoff}
	}
}

// create makes the container of a.
func (w *worker) create(ctx context.Context, a action, pod *corev1.Pod, view cri.Pod) (string, error) {
	spec := containerNamed(pod, a.container)
	if spec == nil {
		return "", fmt.Errorf("the pod has no container %s", a.container)
	}
	cfg, err := w.k.containerConfig(ctx, pod, spec, a.attempt, view.Sandbox)
	if err != nil {
		return "", &trouble{reason: "CreateContainerConfigError", eventReason: "Failed", event: "Error: " + err.Error(),
			err: err, lo: time.Second, hi: time.Minute, held: onlyMissing(err)}
	}
	cfg.TargetID, _ = targetID(pod, view, a.container)
	id, err := w.k.runtime.CreateContainer(ctx, cfg)
	if err != nil {
		return "", &trouble{reason: "CreateContainerError", eventReason: "Failed", event: "Error: " + err.Error(),
			err: err, lo: time.Second, hi: maxCrashBackoff}
	}
	w.containerEventOf(pod, a.container, corev1.EventTypeNormal, "Created", "Created container: %s", a.container)
	return id, nil
}
