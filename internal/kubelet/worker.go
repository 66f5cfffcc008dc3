package kubelet

import (
	"context"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"minik8s/internal/kubelet/connect"
	"minik8s/internal/kubelet/cri"
	"minik8s/internal/kubelet/plan"
	"minik8s/internal/kubelet/status"
)

// worker runs one pod. Its own goroutine alone reads and writes the fields below box; others leave messages in the
// inbox.
type worker struct {
	k   *Kubelet
	uid types.UID
	log *slog.Logger

	wake chan struct{} // holds one
	mu   sync.Mutex
	box  inbox

	pod           *corev1.Pod // the newest object seen, also after its deletion
	objectDeleted bool
	// watchSawDeletion: the watch has reported the deletion, so it will not report this pod again.
	watchSawDeletion bool
	view             cri.Pod
	state            *plan.State
	// stale: the runtime's state must be read before the next decision.
	stale bool
	// isNew: nothing of the pod was ever started, so that it may be rejected.
	isNew bool
	// overcommit is why the pod does not fit beside the others; nil: it does.
	overcommit *plan.Rejection
	// writing: a status is being written. After a failure the next write waits until writeAfter.
	writing    bool
	writeAfter time.Time
	writeDelay time.Duration
	snapshot   *connect.Snapshot // what requests for logs, exec and so on see of the pod
	// ending is closed when the pod is to end.
	ending chan struct{}
	// ended are closed when the pod has ended for the machine's shutdown.
	ended []chan struct{}
	// referencedEphemeral is how many ephemeral containers the pod had when the objects it names were last listed.
	referencedEphemeral int
	actions             sync.WaitGroup
	// probes that run, each with what ends it.
	probes map[plan.ProbeKey]context.CancelFunc
}

func newWorker(k *Kubelet, uid types.UID, view cri.Pod) *worker {
	view.UID = string(uid)
	return &worker{k: k, uid: uid, view: view, state: plan.NewState(), snapshot: k.Snapshot(), wake: make(chan struct{}, 1),
		ending: make(chan struct{}),
		stale:  len(view.Containers) > 0 || view.Sandbox != nil, log: k.log.With("uid", uid)}
}

const (
	minPanicPause = time.Second
	maxPanicPause = 5 * time.Minute
)

// run works until nothing is left of the pod or ctx ends.
func (w *worker) run(ctx context.Context) {
	defer w.actions.Wait()
	defer w.stopProbes()
	delay := minPanicPause
	for ctx.Err() == nil {
		wake, done, err := w.safeStep(ctx)
		if err != nil {
			w.log.Error("pod worker panicked, starting it again", "error", err, "in", delay)
			wake = w.k.now().Add(delay)
			delay = min(2*delay, maxPanicPause)
		} else {
			delay = minPanicPause
		}
		if done && w.k.retireWorker(w) {
			return
		}
		w.wait(ctx, wake)
	}
}

// wait sleeps until a message comes, the moment wake has come (zero: never) or ctx ends.
func (w *worker) wait(ctx context.Context, wake time.Time) {
	var timer <-chan time.Time
	if !wake.IsZero() {
		t := time.NewTimer(max(0, wake.Sub(w.k.now())))
		defer t.Stop()
		timer = t.C
	}
	select {
	case <-w.wake:
	case <-timer:
	case <-ctx.Done():
	}
}

func (w *worker) safeStep(ctx context.Context) (wake time.Time, done bool, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
		}
	}()
	wake, done = w.step(ctx)
	return wake, done, nil
}

// step is one round: take the messages, read the runtime's state, write the status, decide, act. It returns when to
// run again without a message.
func (w *worker) step(ctx context.Context) (wake time.Time, done bool) {
	w.receive()
	if w.pod == nil && !w.objectDeleted {
		return time.Time{}, false
	}
	looked := w.stale
	if w.stale {
		if err := w.observe(ctx); err != nil {
			w.log.Warn("the runtime does not say how the pod is", "error", err)
			return w.k.now().Add(time.Second), false
		}
	}
	if looked || !w.snapshot.Of(w.pod) {
		w.snapshot.Publish(w.pod, w.objectDeleted, w.view)
	}
	if err := w.admit(ctx); err != nil {
		w.log.Warn("the Node cannot be read, so the pod is not admitted", "error", err)
		return w.k.now().Add(time.Second), false
	}
	in := w.input()
	wake = w.publish(ctx, &in)
	if in.Termination() != nil {
		w.cancelWaits()
	}
	if w.hasEnded(in) {
		w.tellEnded()
	}
	p := plan.Decide(in)
	w.announceBackoffs(in)
	for _, a := range p.Actions {
		w.startAction(ctx, a)
	}
	w.updateProbes(ctx)
	return earliest(wake, p.Wake), p.Done
}

func earliest(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

func (w *worker) input() plan.Input {
	in := plan.Input{Pod: w.pod, View: w.view, State: w.state, Now: w.k.now()}
	if w.objectDeleted {
		in.Pod = nil
	}
	return in
}

// observe reads the pod's state from the runtime.
func (w *worker) observe(ctx context.Context) error {
	view, err := w.k.runtime.Pod(ctx, string(w.uid))
	if err != nil {
		return err
	}
	w.view, w.stale = view, false
	status.Restore(&w.view, w.pod)
	for i := range w.view.Containers {
		c := &w.view.Containers[i]
		if c.State == cri.Exited && !c.FinishedAt.IsZero() {
			c.FinishedAt = w.state.EndTime(c.ID, c.FinishedAt, w.k.now())
		}
		if _, known := w.state.TerminationMessages[c.ID]; !known && c.State == cri.Exited {
			w.state.TerminationMessages[c.ID] = w.terminationMessage(ctx, c)
		}
	}
	return nil
}

// admit admits or rejects the pod the first time it is to run. An error means that it is not known yet.
func (w *worker) admit(ctx context.Context) error {
	if w.state.Admitted && len(w.pod.Spec.EphemeralContainers) == w.referencedEphemeral ||
		w.state.Rejected != nil || w.objectDeleted || w.input().Termination() != nil {
		return nil
	}
	if w.state.Admitted {
		w.followReferences(ctx)
		return nil
	}
	no, err := w.rejection(ctx)
	if err != nil {
		return err
	}
	if no != nil {
		w.state.Rejected = no
		w.event(corev1.EventTypeWarning, no.Reason, "%s", no.Message)
		return nil
	}
	w.state.Admitted = true
	w.followReferences(ctx)
	if w.view.Sandbox != nil {
		w.k.countCgroup(w.pod)
	}
	return nil
}

// followReferences watches the objects that the pod uses.
func (w *worker) followReferences(ctx context.Context) {
	w.referencedEphemeral = len(w.pod.Spec.EphemeralContainers)
	if refs := referencesOf(w.pod); len(refs) > 0 {
		w.k.objects.Use(ctx, w.uid, refs)
	}
}

// rejection is why the pod may not run here; nil if it may.
func (w *worker) rejection(ctx context.Context) (*plan.Rejection, error) {
	if w.overcommit != nil || !w.isNew {
		return w.overcommit, nil
	}
	if w.k.shuttingDown.Load() {
		return plan.NodeShutdown(), nil
	}
	return w.k.node.Admit(ctx, w.pod)
}

func (w *worker) name() string {
	if w.pod != nil {
		return w.pod.Namespace + "/" + w.pod.Name
	}
	return string(w.uid)
}
