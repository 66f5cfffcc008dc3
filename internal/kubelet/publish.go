package kubelet

import (
	"context"
	"errors"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"minik8s/internal/api"
	"minik8s/internal/api/podspec"
	"minik8s/internal/client"
	"minik8s/internal/kubelet/plan"
	"minik8s/internal/kubelet/status"
)

const (
	minWriteDelay = 100 * time.Millisecond
	maxWriteDelay = 10 * time.Second
	writeTimeout  = 15 * time.Second
	// lastWrite is how long a write may go on when the kubelet ends.
	lastWrite = time.Second
)

// publish writes the status to the API if it differs: at once, but one write at a time, so that all changes during a
// write are in the next one. It sets in.StatusWritten, and returns when to retry after a failed write.
func (w *worker) publish(ctx context.Context, in *plan.Input) time.Time {
	if in.Pod == nil {
		return time.Time{}
	}
	st := status.Of(*in, w.k.cfg.NodeIP)
	if podspec.Finished(st.Phase) {
		w.k.admission.release(w.uid) // before the scheduler sees the status and assigns the resources again
	}
	if status.Equal(&st, &in.Pod.Status) {
		in.StatusWritten = true
		return time.Time{}
	}
	if w.writing {
		return time.Time{}
	}
	if in.Now.Before(w.writeAfter) {
		return w.writeAfter
	}
	w.writing = true
	want := in.Pod.DeepCopy()
	want.Status = st
	w.actions.Add(1)
	go func() {
		defer w.actions.Done()
		got, deleted, err := w.k.writeStatus(ctx, want)
		w.send(func(b *inbox) {
			b.results = append(b.results, func(w *worker) { w.statusWritten(ctx, got, deleted, err) })
		})
	}()
	return time.Time{}
}

// statusWritten applies the result of a status write.
func (w *worker) statusWritten(ctx context.Context, got *corev1.Pod, deleted bool, err error) {
	w.writing = false
	w.objectDeleted = w.objectDeleted || deleted
	if got != nil {
		w.takePod(got)
	}
	if err == nil || ctx.Err() != nil {
		w.writeDelay = 0
		return
	}
	w.writeDelay = min(max(2*w.writeDelay, minWriteDelay), maxWriteDelay)
	w.writeAfter = w.k.now().Add(w.writeDelay)
	w.log.Warn("pod status not written", "pod", w.name(), "error", err, "again", w.writeDelay)
}

// writeStatus writes pod's status. On a conflict it returns the pod as it is now, from which the status has to be
// made again; deleted says that this pod no longer exists.
func (k *Kubelet) writeStatus(ctx context.Context, pod *corev1.Pod) (now *corev1.Pod, deleted bool, err error) {
	ctx, cancel := finishing(ctx)
	defer cancel()
	obj, err := k.client.Update(ctx, pod, client.WriteOptions{Subresource: "status"})
	if apierrors.IsConflict(err) {
		obj, err = k.client.Get(ctx, client.Key{Kind: api.Pods, Namespace: pod.Namespace, Name: pod.Name})
	}
	if isPodNotFound(err) {
		return nil, true, nil
	}
	if err != nil {
		return nil, false, err
	}
	now, ok := obj.(*corev1.Pod)
	if !ok {
		return nil, false, errors.New("the API returned something that is no pod")
	}
	if now.UID != pod.UID {
		return nil, true, nil
	}
	return now, false, nil
}

// finishing is a context for a write, which may be under way when the daemon is told to end: what is written may be the
// last that is said of a pod for long, when the machine shuts down.
func finishing(ctx context.Context) (context.Context, context.CancelFunc) {
	write, cancel := context.WithTimeout(context.WithoutCancel(ctx), writeTimeout)
	written := context.AfterFunc(ctx, func() { time.AfterFunc(lastWrite, cancel) })
	return write, func() {
		written()
		cancel()
	}
}

// isPodNotFound reports whether the API has no such pod on this node. A node may see no pods but its own, so one that
// does not exist is forbidden to it, as a pod of another node is.
func isPodNotFound(err error) bool { return apierrors.IsNotFound(err) || apierrors.IsForbidden(err) }

// announceBackoffs records an Event for each back-off that begins.
func (w *worker) announceBackoffs(in plan.Input) {
	if in.Pod == nil || in.Termination() != nil {
		return
	}
	for _, spec := range podspec.AllContainers(in.Pod) {
		name := spec.Name
		w.announcePullBackoff(in, spec)
		c := plan.NewestStarted(in.View, name)
		if c == nil {
			continue
		}
		wait := status.WaitingToRestart(in, c)
		cm := w.state.Container(name)
		if wait != nil && wait.Reason == "CrashLoopBackOff" && cm.AnnouncedBackoff != c.Attempt {
			cm.AnnouncedBackoff = c.Attempt
			w.containerEvent(name, corev1.EventTypeWarning, "BackOff",
				"Back-off restarting failed container %s in pod %s_%s(%s)", name, in.Pod.Name, in.Pod.Namespace, in.Pod.UID)
		}
	}
}

func (w *worker) announcePullBackoff(in plan.Input, spec *corev1.Container) {
	f := in.State.Failures[(plan.Action{Verb: plan.EnsureImage, Container: spec.Name}).Key()]
	if f == nil || f.Announced {
		return
	}
	if t := status.ImageWaiting(in, spec.Name); t != nil && t.Reason == "ImagePullBackOff" {
		f.Announced = true
		w.containerEvent(spec.Name, corev1.EventTypeNormal, "BackOff", "Back-off pulling image %q", spec.Image)
	}
}

// event is an Event on the pod.
func (w *worker) event(kind, reason, format string, args ...any) {
	w.containerEvent("", kind, reason, format, args...)
}
