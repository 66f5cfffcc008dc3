package sandbox

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"slices"

	"golang.org/x/sys/unix"

	"minik8s/internal/kubelet/work"
)

// Network connects sandboxes, which it knows by their ids.
type Network interface {
	// Ready says whether sandboxes can be connected. They cannot until the node has a pod range.
	Ready() bool
	// Connect gives the network namespace of the calling thread, which is locked to its goroutine, a link to the host
	// and an address. What it leaves on an error ends with the namespace.
	Connect(sandbox string) (netip.Addr, error)
	// Disconnect frees the address and removes the sandbox's host ports. The link ends with its namespace. It does
	// nothing for a sandbox that is not connected.
	Disconnect(sandbox string, addr netip.Addr) error
}

// Config configures a Pool.
type Config struct {
	// Dir holds a directory per sandbox.
	Dir     string
	Network Network
	// Work bounds work that takes CPU time; it is shared with other packages.
	Work *work.Limit
	// Warm is how many sandboxes are made in advance for the next pods.
	Warm int
	Log  *slog.Logger
}

// Sandbox is what every pod needs and what is the same for all: pinned namespaces, an address, shared memory at
// /dev/shm, and a scratch directory. Its directory is made first and removed last, so that
// everything of it can be found from there. A tmpfs is mounted on the directory and all other mounts of the sandbox
// are inside it, so that one unmount removes them: each unmount waits for all processors.
//
// It is stored in the pods' records, so its fields must keep their names.
type Sandbox struct {
	ID    string
	Kinds []string // the namespaces it has: net, uts, ipc
	Addr  netip.Addr
}

// Ordinary are the namespaces of an ordinary pod, and of sandboxes made in advance.
var Ordinary = []string{"net", "uts", "ipc"}

// Pool makes and removes sandboxes, some of them in advance. Its methods are safe for concurrent use.
type Pool struct {
	cfg  Config
	warm warm
}

// New makes a Pool. It makes no sandboxes in advance before Start.
func New(cfg Config) *Pool { return &Pool{cfg: cfg} }

// Dir is a sandbox's directory.
func (p *Pool) Dir(id string) string { return filepath.Join(p.cfg.Dir, id) }

// newID is random, of hexadecimal digits.
func newID() string {
	var b [16]byte
	rand.Read(b[:]) // never fails, by its documentation
	return hex.EncodeToString(b[:])
}

// Get returns a sandbox that was made in advance, or makes one if none fits. It then belongs to the caller; until it
// is in a record, the next start would remove it.
func (p *Pool) Get(ctx context.Context, kinds []string) (*Sandbox, error) {
	if slices.Equal(kinds, Ordinary) {
		if !p.cfg.Network.Ready() {
			return nil, errors.New("containerd: the pods' network is not ready: the node has no pod range yet")
		}
		for s := p.take(); s != nil; s = p.take() {
			if p.Whole(s) {
				return s, nil
			}
			if err := p.Remove(s); err != nil {
				p.cfg.Log.Warn("a sandbox made ahead was damaged and could not be removed", "err", err)
			}
		}
	}
	return p.make(ctx, kinds)
}

// Whole reports whether a sandbox's namespaces still exist.
func (p *Pool) Whole(s *Sandbox) bool {
	for _, k := range s.Kinds {
		if !isPinned(filepath.Join(p.Dir(s.ID), k)) {
			return false
		}
	}
	return true
}

// Enter runs f on a thread in these kinds of a sandbox's namespaces. Sockets that f opens stay in them.
func (p *Pool) Enter(id string, kinds []string, f func() error) error {
	return inNamespaces(p.Dir(id), kinds, f)
}

// List returns the ids of all sandboxes.
func (p *Pool) List() ([]string, error) {
	entries, err := os.ReadDir(p.cfg.Dir)
	if err != nil {
		return nil, fmt.Errorf("containerd: %w", err)
	}
	var ids []string
	for _, e := range entries {
		ids = append(ids, e.Name())
	}
	return ids, nil
}

// make makes a sandbox with these namespaces; the network is connected if net is one of them.
func (p *Pool) make(ctx context.Context, kinds []string) (_ *Sandbox, err error) {
	if err := p.cfg.Work.Acquire(ctx, work.Sandbox); err != nil {
		return nil, err
	}
	defer p.cfg.Work.Release()
	s := &Sandbox{ID: newID(), Kinds: kinds}
	dir := p.Dir(s.ID)
	if err := os.MkdirAll(dir, 0o711); err != nil {
		return nil, fmt.Errorf("containerd: %w", err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, p.Remove(s))
		}
	}()
	if err := mountTmpfs(dir); err != nil {
		return nil, err
	}
	if slices.Contains(kinds, "ipc") {
		if err := unix.Mount("shm", filepath.Join(dir, "shm"), "tmpfs", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC,
			"mode=1777,size=65536k"); err != nil {
			return nil, fmt.Errorf("containerd: shared memory: %w", err)
		}
	}
	if len(kinds) == 0 {
		return s, nil
	}
	return s, makeNamespaces(dir, kinds, func() (err error) {
		if slices.Contains(kinds, "net") {
			s.Addr, err = p.cfg.Network.Connect(s.ID)
		}
		return err
	})
}

// Remove removes everything of a sandbox. It may be half-made or half-removed, with only its ID set.
func (p *Pool) Remove(s *Sandbox) error {
	dir := p.Dir(s.ID)
	if err := errors.Join(unmountAll(dir), p.cfg.Network.Disconnect(s.ID, s.Addr)); err != nil { // the veth ends with its namespace
		return err
	}
	return os.RemoveAll(dir)
}
