package image

import (
	"context"
	"log/slog"
	"net/http"
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
	// Registries are reached in ways of their own, by the host in the names of their images.
	Registries map[string]Way
	// Work bounds background work that takes CPU time; it is shared with other packages.
	Work *work.Limit
	Log  *slog.Logger
}

// Way is how a registry is reached.
type Way struct {
	Scheme, Host string
	Client       *http.Client
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
