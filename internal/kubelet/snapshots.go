package kubelet

import (
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"minik8s/internal/api"
	"minik8s/internal/kubelet/cri"
	"minik8s/internal/kubelet/plan"
)

// snapshot is a worker's copy of its pod's state for requests for logs, exec and so on.
type snapshot struct {
	pod *corev1.Pod
	// containers are the newest attempts in the runtime, by the name in the spec.
	containers map[string]cri.Container
	// exits are closed when the container of that id has exited.
	exits map[string]chan struct{}
}

// snapshots holds the snapshots of all pods.
type snapshots struct {
	mu   sync.Mutex
	pods map[string]*snapshot // by namespace/name; of two with one name the later
}

func (g *snapshots) reset() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.pods = map[string]*snapshot{}
}

// get is the snapshot of a pod; ok is false if this node does not have the pod.
func (g *snapshots) get(namespace, pod string) (s snapshot, ok bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	p := g.pods[namespace+"/"+pod]
	if p == nil {
		return snapshot{}, false
	}
	s = snapshot{pod: p.pod, containers: p.containers, exits: map[string]chan struct{}{}}
	for id, ch := range p.exits {
		s.exits[id] = ch
	}
	return s, true
}

// Pods are the pods of this node. They must not be changed.
func (k *Kubelet) Pods() []*corev1.Pod {
	g := &k.snapshots
	g.mu.Lock()
	defer g.mu.Unlock()
	out := make([]*corev1.Pod, 0, len(g.pods))
	for _, s := range g.pods {
		if s.pod != nil {
			out = append(out, s.pod)
		}
	}
	return out
}

// publishSnapshot brings the snapshot up to date. It runs in the worker's goroutine, after observe.
func (w *worker) publishSnapshot() {
	g := &w.k.snapshots
	g.mu.Lock()
	defer g.mu.Unlock()
	if w.snapshot == nil {
		w.snapshot = &snapshot{exits: map[string]chan struct{}{}}
	}
	s := w.snapshot
	s.containers = map[string]cri.Container{}
	there := map[string]bool{}
	for i := range w.view.Containers {
		c := &w.view.Containers[i]
		there[c.ID] = c.State != cri.Exited
		if n := plan.Newest(w.view, c.Name); n.ID == c.ID {
			s.containers[c.Name] = *c
		}
	}
	for id, ch := range s.exits {
		if !there[id] {
			close(ch)
			delete(s.exits, id)
		}
	}
	for id, running := range there {
		if running && s.exits[id] == nil {
			s.exits[id] = make(chan struct{})
		}
	}
	if w.pod != nil {
		s.pod = w.pod
	}
	if w.pod != nil && !w.objectDeleted { // its name may belong to a newer pod
		g.pods[w.pod.Namespace+"/"+w.pod.Name] = s
	}
}

// dropSnapshot removes the snapshot, which ends requests that follow the pod's logs.
func (w *worker) dropSnapshot() {
	g := &w.k.snapshots
	g.mu.Lock()
	defer g.mu.Unlock()
	if w.snapshot == nil {
		return
	}
	for id, ch := range w.snapshot.exits {
		close(ch)
		delete(w.snapshot.exits, id)
	}
	if w.pod != nil && g.pods[w.pod.Namespace+"/"+w.pod.Name] == w.snapshot {
		delete(g.pods, w.pod.Namespace+"/"+w.pod.Name)
	}
}

func (k *Kubelet) podOf(namespace, name string) (snapshot, error) {
	s, ok := k.snapshots.get(namespace, name)
	if !ok || s.pod == nil {
		return s, apierrors.NewNotFound(api.Pods.GR(), name)
	}
	return s, nil
}
