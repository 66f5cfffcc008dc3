package kubelet

import (
	"maps"
	"strconv"

	corev1 "k8s.io/api/core/v1"

	"minik8s/internal/kubelet/plan"
)

// inbox has the messages to a worker since its last round. Of each field only the latest value matters.
type inbox struct {
	pod           *corev1.Pod
	objectDeleted bool
	stale         bool
	images        bool // images were added to the node
	objects       bool // an object that the pod uses has changed
	results       []func(*worker)
	// shutdown is how long the pod may take to end because the machine shuts down, and ended are to be closed then.
	shutdown *plan.Shutdown
	ended    []chan struct{}
}

// take stores pod unless the inbox has a newer one.
func (b *inbox) take(pod *corev1.Pod) {
	if b.pod == nil || !older(pod, b.pod) {
		b.pod = pod
	}
}

// older reports whether a is an earlier version of the object than b. Revisions are etcd's, so they are numbers;
// where one is not, the later arrival wins.
func older(a, b *corev1.Pod) bool {
	ra, erra := strconv.ParseUint(a.ResourceVersion, 10, 64)
	rb, errb := strconv.ParseUint(b.ResourceVersion, 10, 64)
	return erra == nil && errb == nil && ra < rb
}

// send leaves a message and wakes the worker.
func (w *worker) send(f func(*inbox)) {
	w.mu.Lock()
	f(&w.box)
	w.mu.Unlock()
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

func (w *worker) hasMessages() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.box.pod != nil || len(w.box.results) > 0 || len(w.box.ended) > 0
}

func (w *worker) receive() {
	w.mu.Lock()
	box := w.box
	w.box = inbox{}
	w.mu.Unlock()
	for _, apply := range box.results {
		apply(w)
	}
	if box.pod != nil {
		w.takePod(box.pod)
	}
	w.objectDeleted, w.watchSawDeletion = w.objectDeleted || box.objectDeleted, w.watchSawDeletion || box.objectDeleted
	w.stale = w.stale || box.stale
	if box.shutdown != nil {
		w.state.Shutdown = box.shutdown
	}
	w.ended = append(w.ended, box.ended...)
	if box.images {
		w.state.RetryImages()
	}
	if box.objects {
		w.state.ObjectsChanged()
	}
}

func (w *worker) takePod(pod *corev1.Pod) {
	if w.pod != nil && older(pod, w.pod) {
		return
	}
	if w.pod != nil && plan.HasChangingVolumes(pod) && (!maps.Equal(pod.Labels, w.pod.Labels) || !maps.Equal(pod.Annotations, w.pod.Annotations)) {
		w.state.VolumeChanges++
	}
	if pod.DeletionTimestamp != nil && (w.pod == nil || !pod.DeletionTimestamp.Equal(w.pod.DeletionTimestamp)) {
		w.state.DeletionSeen = w.k.now()
	}
	w.pod = pod
}
