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

// updateProbes starts the probes that should run and ends all others. A pod without probes costs only a check of its
// spec.
func (w *worker) updateProbes(ctx context.Context) {
	in := w.input()
	wanted := plan.Probes(in)
	for key, stop := range w.probes {
		if _, still := wanted[key]; !still {
			stop()
			delete(w.probes, key)
		}
	}
	for key, job := range wanted {
		if w.probes[key] != nil {
			continue
		}
		if w.probes == nil {
			w.probes = map[plan.ProbeKey]context.CancelFunc{}
		}
		own, cancel := context.WithCancel(ctx)
		w.probes[key] = cancel
		target, pod := w.target(w.pod, job.Container, key.ContainerID), w.pod
		w.actions.Add(1)
		go func() {
			defer w.actions.Done()
			defer cancel()
			w.runProbe(own, key, job, target, pod)
		}()
	}
}

// stopProbes ends all probes of the pod.
func (w *worker) stopProbes() {
	for key, stop := range w.probes {
		stop()
		delete(w.probes, key)
	}
}

// target is a container as probes and hooks reach it.
func (w *worker) target(pod *corev1.Pod, container, id string) probe.Target {
	return probe.Target{Runtime: w.k.runtime, ID: id, IP: addressOf(w.view.Sandbox), Spec: podspec.Container(pod, container)}
}

func addressOf(s *cri.Sandbox) string {
	if s == nil || len(s.Addresses) == 0 {
		return ""
	}
	return s.Addresses[0].String()
}

// runProbe probes once in each period until ctx ends, and sends the worker each change of the result.
func (w *worker) runProbe(ctx context.Context, key plan.ProbeKey, job plan.Probe, target probe.Target, pod *corev1.Pod) {
	p := job.Spec
	begin := job.Started.Add(time.Duration(p.InitialDelaySeconds) * time.Second)
	period := time.Duration(max(p.PeriodSeconds, 1)) * time.Second
	// At the latest initialDelaySeconds from now: after a start of the daemon, the container's start is a time by
	// the machine's clock, which may have been set since.
	t := time.NewTimer(min(max(0, begin.Sub(w.k.now())), time.Duration(p.InitialDelaySeconds)*time.Second))
	defer t.Stop()
	var count plan.Streak
	reported := map[bool]bool{} // the result that the worker has
	for {
		select {
		case <-t.C:
		case <-ctx.Done():
			return
		}
		t.Reset(period)
		ok, valid := w.probeOnce(ctx, key, job, target, pod)
		if !valid || !count.Add(ok, p) || reported[ok] {
			continue
		}
		reported[ok], reported[!ok] = true, false
		w.send(func(b *inbox) {
			b.results = append(b.results, func(w *worker) { w.state.HealthFor(key.ContainerID).Record(key.Kind, ok, p) })
		})
		if !ok && key.Kind != plan.ReadinessProbe || ok && key.Kind == plan.StartupProbe {
			return // the result cannot change any more
		}
	}
}

// probeOnce probes once. valid is false if the container could not be asked.
func (w *worker) probeOnce(ctx context.Context, key plan.ProbeKey, job plan.Probe, target probe.Target, pod *corev1.Pod) (ok, valid bool) {
	own, cancel := context.WithTimeout(ctx, time.Duration(max(job.Spec.TimeoutSeconds, 1))*time.Second)
	defer cancel()
	_, err := recovered(own, func(ctx context.Context) (outcome, error) {
		return nil, probe.Ask(ctx, target, &job.Spec.ProbeHandler)
	})
	var failed *probe.Failure
	switch {
	case err == nil:
		return true, true
	case ctx.Err() != nil, errors.Is(err, cri.ErrNotRunning):
		return false, false
	case errors.As(err, &failed):
		w.containerEventOf(pod, job.Container, corev1.EventTypeWarning, "Unhealthy", "%s probe failed: %s", key.Kind, failed.Message)
		return false, true
	}
	w.containerEventOf(pod, job.Container, corev1.EventTypeWarning, "Unhealthy", "%s probe errored and resulted in unknown state: %v", key.Kind, err)
	return false, false
}
