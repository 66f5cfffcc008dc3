package connect

import (
	"maps"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"minik8s/internal/api"
	"minik8s/internal/kubelet/cri"
	"minik8s/internal/kubelet/logs"
	"minik8s/internal/kubelet/plan"
)

// Config is what a Manager needs. All must be set.
type Config struct {
	Runtime cri.Runtime
	// LogPath is the log of one attempt of a container.
	LogPath func(pod *corev1.Pod, container string, attempt int) string
	// Now is the clock.
	Now func() time.Time
}

// Manager has the snapshots of a node's pods and answers clients. Its methods are safe for concurrent use.
type Manager struct {
	cfg Config
	hub logs.Hub

	mu   sync.Mutex
	pods map[string]*Snapshot // by namespace/name; of two with one name the later
}

// New makes a Manager without pods.
func New(cfg Config) *Manager { return &Manager{cfg: cfg, pods: map[string]*Snapshot{}} }

// Snapshot is the state of one pod that its worker has published last. Only that worker may call its methods.
type Snapshot struct {
	m   *Manager
	pod *corev1.Pod
	// containers are the newest attempts in the runtime, by the name in the spec.
	containers map[string]cri.Container
	// exits are closed when the container of that id has exited.
	exits map[string]chan struct{}
}

// Snapshot makes the snapshot of a pod; clients do not see the pod before it is published.
func (m *Manager) Snapshot() *Snapshot {
	return &Snapshot{m: m, exits: map[string]chan struct{}{}}
}

// Of reports whether the snapshot was published with this object.
func (s *Snapshot) Of(pod *corev1.Pod) bool { return s.containers != nil && s.pod == pod }

// Publish brings the snapshot up to date with the pod's object, which is nil if it is not known, and with the runtime's
// state. deleted says that the object is deleted: its name may belong to a newer pod.
func (s *Snapshot) Publish(pod *corev1.Pod, deleted bool, view cri.Pod) {
	s.m.mu.Lock()
	defer s.m.mu.Unlock()
	s.containers = map[string]cri.Container{}
	there := map[string]bool{}
	for i := range view.Containers {
		c := &view.Containers[i]
		there[c.ID] = c.State != cri.Exited
		if n := plan.Newest(view, c.Name); n.ID == c.ID {
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
	if pod == nil {
		return
	}
	s.pod = pod
	if !deleted {
		s.m.pods[name(pod)] = s
	}
}

// Drop removes the snapshot, which ends requests that follow the pod's logs.
func (s *Snapshot) Drop() {
	s.m.mu.Lock()
	defer s.m.mu.Unlock()
	for id, ch := range s.exits {
		close(ch)
		delete(s.exits, id)
	}
	if s.pod != nil && s.m.pods[name(s.pod)] == s {
		delete(s.m.pods, name(s.pod))
	}
}

// Reset forgets all pods.
func (m *Manager) Reset() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.pods = map[string]*Snapshot{}
}

// Pods are the pods of this node. They must not be changed.
func (m *Manager) Pods() []*corev1.Pod {
	m.mu.Lock()
	defer m.mu.Unlock()
	out := make([]*corev1.Pod, 0, len(m.pods))
	for _, s := range m.pods {
		out = append(out, s.pod)
	}
	return out
}

// get is a copy of a pod's snapshot. The error is NotFound if this node does not have the pod.
func (m *Manager) get(namespace, pod string) (Snapshot, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	s := m.pods[namespace+"/"+pod]
	if s == nil {
		return Snapshot{}, apierrors.NewNotFound(api.Pods.GR(), pod)
	}
	return Snapshot{pod: s.pod, containers: s.containers, exits: maps.Clone(s.exits)}, nil
}

func name(pod *corev1.Pod) string { return pod.Namespace + "/" + pod.Name }
