package image

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"

	ctrd "github.com/containerd/containerd"

	"minik8s/internal/kubelet/containerd/embed"
	"minik8s/internal/kubelet/cri"
	"minik8s/internal/kubelet/work"
)

// Config configures a Store.
type Config struct {
	Containerd *embed.Containerd
	// InsecureRegistries are host[:port] of registries to use by plain HTTP; those on loopback always are.
	InsecureRegistries []string
	// Work bounds background work that takes CPU time; it is shared with other packages.
	Work *work.Limit
	Log  *slog.Logger
}

// Store holds the images of this node. Its methods are safe for concurrent use.
type Store struct {
	cfg         Config
	client      *ctrd.Client
	snapshotter string
	cache       cache
	pulls       pulls
	archives    atomic.Pointer[string] // the directory that ImportDir was last called with

	run context.Context // context of background work
	wg  sync.WaitGroup
}

var _ cri.Images = (*Store)(nil)

// New makes a Store. Its background work ends with ctx; Wait waits for that.
func New(ctx context.Context, cfg Config) *Store {
	return &Store{cfg: cfg, client: cfg.Containerd.Client, snapshotter: cfg.Containerd.Snapshotter, run: cfg.Containerd.Context(ctx)}
}

// Wait waits for the end of background work.
func (s *Store) Wait() { s.wg.Wait() }
