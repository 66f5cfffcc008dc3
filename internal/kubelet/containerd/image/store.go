package image

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"

	ctrd "github.com/containerd/containerd"
	"golang.org/x/sync/semaphore"

	"minik8s/internal/kubelet/containerd/embed"
	"minik8s/internal/kubelet/cri"
)

// Config is what a Store is made from.
type Config struct {
	Containerd *embed.Containerd
	// InsecureRegistries are host[:port] spoken to by plain HTTP; those on loopback always are.
	InsecureRegistries []string
	// Work bounds what takes CPU time in the background, together with the work of others.
	Work *semaphore.Weighted
	Log  *slog.Logger
}

// Store is the images of this node. Its methods may be called side by side.
type Store struct {
	cfg         Config
	client      *ctrd.Client
	snapshotter string
	cache       cache
	pulls       pulls
	archives    atomic.Pointer[string] // the directory that ImportDir was last called with

	run context.Context // of what goes on in the background
	wg  sync.WaitGroup
}

var _ cri.Images = (*Store)(nil)

// New makes a Store. What it does in the background ends with ctx; Wait waits for that.
func New(ctx context.Context, cfg Config) *Store {
	return &Store{cfg: cfg, client: cfg.Containerd.Client, snapshotter: cfg.Containerd.Snapshotter, run: cfg.Containerd.Context(ctx)}
}

// Wait waits until nothing goes on in the background.
func (s *Store) Wait() { s.wg.Wait() }
