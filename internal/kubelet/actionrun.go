package kubelet

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	corev1 "k8s.io/api/core/v1"

	"minik8s/internal/kubelet/plan"
)

// startAction starts an action; its result comes back as a message.
func (w *worker) startAction(ctx context.Context, a plan.Action) {
	key := a.Key()
	own, cancel := actionContext(ctx, a.Verb)
	w.state.InProgress[key] = plan.Running{Action: a, KilledBy: w.k.now().Add(a.Grace), Cancel: cancel,
		VolumeChanges: w.state.VolumeChanges}
	if a.Verb == plan.StopContainer && a.Why != "" {
		w.containerEvent(a.Container, corev1.EventTypeNormal, "Killing", a.Why, a.Container)
	}
	do := w.effectOf(a)
	w.actions.Add(1)
	go func() {
		defer w.actions.Done()
		defer cancel()
		apply, err := recovered(own, do)
		w.send(func(b *inbox) {
			b.results = append(b.results, func(w *worker) { w.finishAction(ctx, a, apply, err) })
		})
	}()
}

// finishTime is how long an action may continue when the kubelet ends. Actions that make or remove things take a
// fraction of that; if they can finish, the next start finds nothing half-made.
const finishTime = time.Second

// actionContext is the context of an action: for one that mostly waits it ends with ctx, for others finishTime later.
func actionContext(ctx context.Context, v plan.Verb) (context.Context, context.CancelFunc) {
	if v == plan.EnsureImage || v == plan.StopContainer {
		return context.WithCancel(ctx)
	}
	own, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() {
		t := time.NewTimer(finishTime)
		defer t.Stop()
		select {
		case <-t.C:
			cancel()
		case <-own.Done():
		}
	})
	return own, func() {
		stop()
		cancel()
	}
}

// cancelWaits cancels what a pod waits for when it is to end: images, the start limit, its postStart hook.
func (w *worker) cancelWaits() {
	select {
	case <-w.ending:
	default:
		close(w.ending)
	}
	for _, f := range w.state.InProgress {
		if f.Action.Verb == plan.EnsureImage {
			f.Cancel()
		}
	}
}

// outcome is the result of an action, applied by the worker's own goroutine.
type outcome func(*worker)

func recovered(ctx context.Context, do func(context.Context) (outcome, error)) (apply outcome, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
		}
	}()
	return do(ctx)
}

// finishAction applies the result of an action.
func (w *worker) finishAction(ctx context.Context, a plan.Action, apply outcome, err error) {
	key := a.Key()
	known := w.state.InProgress[key].VolumeChanges
	delete(w.state.InProgress, key)
	if err != nil || changesContainers(a.Verb) { // a failed action may have been done in part
		w.stale = true
	}
	if apply != nil {
		apply(w)
	}
	if err == nil {
		delete(w.state.Failures, key)
		return
	}
	if ctx.Err() != nil || errors.Is(err, errEnding) {
		return
	}
	var t *plan.ActionError
	if !errors.As(err, &t) {
		t = &plan.ActionError{Reason: defaultReason(a.Verb), Err: err, MinDelay: time.Second, MaxDelay: time.Minute}
	}
	f := w.state.Fail(key, t, w.k.now())
	f.WaitsForObject = t.WaitsForObject && known == w.state.VolumeChanges // false if the change came while the action ran
	again := "in " + f.Delay.String()
	if f.WaitsForObject {
		again = "when that changes"
	}
	w.log.Warn("pod action failed", "pod", w.name(), "action", key, "error", t.Err, "again", again)
	if t.Event != "" {
		w.containerEvent(a.Container, corev1.EventTypeWarning, t.EventReason, "%s", t.Event)
	}
}

func changesContainers(v plan.Verb) bool {
	switch v {
	case plan.StartContainer, plan.StopContainer, plan.RemoveContainer, plan.RemoveSandbox:
		return true
	}
	return false
}
