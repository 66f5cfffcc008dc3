package checkpoint

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"minik8s/internal/disk"
)

// Store is a directory with a file for each pod.
type Store struct {
	dir string
	log *slog.Logger

	mu      sync.Mutex
	waiting map[types.UID]*corev1.Pod // nil: to be removed
	written map[types.UID]version
	wake    chan struct{}
}

// version is what makes a pod worth writing again.
type version struct {
	generation int64
	deleted    bool
	phase      corev1.PodPhase
	labels     int
}

func versionOf(p *corev1.Pod) version {
	return version{p.Generation, p.DeletionTimestamp != nil, p.Status.Phase, len(p.Labels) + len(p.Annotations)}
}

// New returns a store in a directory, which Run makes.
func New(dir string, log *slog.Logger) *Store {
	return &Store{dir: dir, log: log, waiting: map[types.UID]*corev1.Pod{}, written: map[types.UID]version{}, wake: make(chan struct{}, 1)}
}

// Put has a pod written, which must not be changed any more, if it differs from what was written last in more than its
// conditions.
func (s *Store) Put(p *corev1.Pod) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.written[p.UID] == versionOf(p) {
		return
	}
	s.written[p.UID] = versionOf(p)
	s.waiting[p.UID] = p
	s.signal()
}

// Drop has a pod's file removed.
func (s *Store) Drop(uid types.UID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.written, uid)
	s.waiting[uid] = nil
	s.signal()
}

// Keep drops all pods but these.
func (s *Store) Keep(there map[types.UID]bool) {
	for uid := range s.names() {
		if !there[uid] {
			s.Drop(uid)
		}
	}
}

func (s *Store) signal() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// Run writes until ctx ends, and then what still waits.
func (s *Store) Run(ctx context.Context) {
	if err := disk.Private(s.dir, 0o700); err != nil {
		s.log.Warn("pods are not written down: without a master a restart will not know them", "error", err)
		return
	}
	for {
		select {
		case <-s.wake:
			s.flush()
		case <-ctx.Done():
			s.flush()
			return
		}
	}
}

func (s *Store) flush() {
	s.mu.Lock()
	batch := s.waiting
	s.waiting = map[types.UID]*corev1.Pod{}
	s.mu.Unlock()
	for uid, p := range batch {
		if err := s.write(uid, p); err != nil {
			s.log.Warn("a pod is not written down: without a master a restart will not know it", "uid", uid, "error", err)
		}
	}
}

func (s *Store) write(uid types.UID, p *corev1.Pod) error {
	path := filepath.Join(s.dir, string(uid)+suffix)
	if p == nil {
		if err := os.Remove(path); !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return nil
	}
	kept := *p
	kept.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}
	kept.ManagedFields = nil
	data, err := json.Marshal(&kept)
	if err != nil {
		return err
	}
	if err := os.WriteFile(path+"~", data, 0o600); err != nil {
		return err
	}
	return os.Rename(path+"~", path)
}

const suffix = ".json"

func (s *Store) names() map[types.UID]bool {
	entries, err := os.ReadDir(s.dir)
	if err != nil {
		return nil
	}
	out := map[types.UID]bool{}
	for _, e := range entries {
		if uid, ok := strings.CutSuffix(e.Name(), suffix); ok {
			out[types.UID(uid)] = true
		}
	}
	return out
}

// Load returns the pods that were written down. Files that cannot be read are left out, with a warning.
func (s *Store) Load() []*corev1.Pod {
	var out []*corev1.Pod
	for uid := range s.names() {
		p := &corev1.Pod{}
		data, err := os.ReadFile(filepath.Join(s.dir, string(uid)+suffix))
		if err == nil {
			err = json.Unmarshal(data, p)
		}
		if err == nil && p.UID != uid {
			err = errors.New("it is another pod's")
		}
		if err != nil {
			s.log.Warn("a pod that was written down cannot be read", "uid", uid, "error", err)
			continue
		}
		out = append(out, p)
	}
	return out
}
