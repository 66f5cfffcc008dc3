package kubelet

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// launch begins an action; its result comes back as a message.
func (w *worker) launch(ctx context.Context, a action) {
	key := a.key()
	a.changes = w.mem.volumeChanges
	own, cancel := actionContext(ctx, a.verb)
	w.mem.flights[key] = flight{act: a, deadline: w.k.now().Add(a.grace), cancel: cancel}
	if a.verb == stopContainer && a.why != "" {
		w.containerEvent(a.container, corev1.EventTypeNormal, "Killing", a.why, a.container)
	}
	do := w.doer(a)
	w.flights.Add(1)
	go func() {
		defer w.flights.Done()
		defer cancel()
		apply, err := safely(own, do)
		w.tell(func(b *inbox) {
			b.results = append(b.results, func(w *worker) { w.land(ctx, a, apply, err) })
		})
	}()
}

// finishTime is how long an action may go on when the kubelet is told to end. What makes or removes
// things takes a fraction of that, and is better finished than found half-made by the next start.
const finishTime = time.Second

// actionContext is the context of an action: waiting ends with ctx, work a little later.
func actionContext(ctx context.Context, v verb) (context.Context, context.CancelFunc) {
	if v == ensureImage || v == stopContainer {
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

// abandon stops waiting, in a pod that is to end, for images and for a turn to start.
func (w *worker) abandon() {
	select {
	case <-w.ending:
	default:
		close(w.ending)
	}
	for _, f := range w.mem.flights {
		if f.act.verb == ensureImage {
			f.cancel()
		}
	}
}

// outcome is what an action brings, applied by the worker's own goroutine.
type outcome func(*worker)

func safely(ctx context.Context, do func(context.Context) (outcome, error)) (apply outcome, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
		}
	}()
	return do(ctx)
}

// land takes the result of an action.
func (w *worker) land(ctx context.Context, a action, apply outcome, err error) {
	key := a.key()
	delete(w.mem.flights, key)
	if err != nil || touchesContainers(a.verb) { // what failed may have been done in part
		w.stale = true
	}
	if apply != nil {
		apply(w)
	}
	if err == nil {
		delete(w.mem.failures, key)
		return
	}
	if ctx.Err() != nil || errors.Is(err, errEnding) {
		return
	}
	var t *trouble
	if !errors.As(err, &t) {
		t = &trouble{reason: defaultReason(a.verb), err: err, lo: time.Second, hi: time.Minute}
	}
	f := w.mem.fail(key, t.reason, t.err.Error(), w.k.now(), t.lo, t.hi)
	f.held = t.held && a.changes == w.mem.volumeChanges // else the change has come while we looked
	again := "in " + f.delay.String()
	if f.held {
		again = "when that changes"
	}
	w.log.Warn("pod action failed", "pod", w.name(), "action", key, "error", t.err, "again", again)
	if t.event != "" {
		w.containerEvent(a.container, corev1.EventTypeWarning, t.eventReason, "%s", t.event)
	}
}

func touchesContainers(v verb) bool {
	switch v {
	case startContainer, stopContainer, removeContainer, removeSandbox:
		return true
	}
	return false
}
