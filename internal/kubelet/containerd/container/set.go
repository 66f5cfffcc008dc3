package container

import (
	"context"
	"log/slog"
	"maps"
	"path/filepath"
	"slices"
	"sync"

	"github.com/containerd/containerd/api/services/tasks/v1"

	"minik8s/internal/kubelet/containerd/embed"
	"minik8s/internal/kubelet/work"
)

// Config is what containers need.
type Config struct {
	// Dir holds a directory per container: its pipes and its state.
	Dir        string
	Containerd *embed.Containerd
	// Work bounds work that takes CPU time; it is shared with other packages.
	Work *work.Limit
	// LogMaxSize is the size in bytes at which a log is rotated, and LogMaxFiles how many are kept, the current one
	// included.
	LogMaxSize  int64
	LogMaxFiles int
	Log         *slog.Logger

	// Changed is called when a container has started or ended. It must not block.
	Changed func(*Container)
	// Damaged is called, before Changed, when a container has ended as it would if the files of its image were damaged.
	// It must not block.
	Damaged func(image string)
	// Missed is called when events of containerd were lost: any container may have changed. It must not block.
	Missed func()
}

// Set is the containers of a runtime. Its methods are safe for concurrent use. Every ctx is from Containerd.Context.
type Set struct {
	cfg Config
	run context.Context // ends with the runtime
	wg  sync.WaitGroup

	mu   sync.Mutex
	byID map[string]*Container
}

// New makes an empty Set, for Restore to fill. What it does in the background ends soon after run; see Wait.
func New(run context.Context, cfg Config) *Set {
	return &Set{cfg: cfg, run: run, byID: map[string]*Container{}}
}

// Get is the container with an id, or nil.
func (s *Set) Get(id string) *Container {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.byID[id]
}

// OfPod are the containers of a pod, in no order.
func (s *Set) OfPod(uid string) []*Container {
	s.mu.Lock()
	defer s.mu.Unlock()
	var list []*Container
	for _, c := range s.byID {
		if c.Meta.PodUID == uid {
			list = append(list, c)
		}
	}
	return list
}

// All are the containers there are now, in no order.
func (s *Set) All() []*Container {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Collect(maps.Values(s.byID))
}

// Wait waits for what is done in the background. It is called when the context of New has ended.
func (s *Set) Wait() { s.wg.Wait() }

// Detach stops reading the containers' output. Their pipes hold further output for the next run.
func (s *Set) Detach() {
	for _, c := range s.All() {
		c.output.Detach()
	}
}

func (s *Set) add(c *Container) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.byID[c.Meta.ID] = c
}

func (s *Set) forget(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.byID, id)
}

func (s *Set) dir(id string) string { return filepath.Join(s.cfg.Dir, id) }

func (s *Set) tasks() tasks.TasksClient { return s.cfg.Containerd.Client.TaskService() }
