package containerd

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"

	"github.com/containerd/containerd/errdefs"
	"github.com/containerd/containerd/runtime/v2/shim"
	"github.com/containerd/containerd/sandbox"
	"github.com/containerd/typeurl/v2"
	"golang.org/x/sys/unix"
	"google.golang.org/protobuf/types/known/anypb"
)

// slot is what every pod needs and what is the same for all: pinned namespaces, an address, memory
// shared under /dev/shm, a scratch directory, and a shim with nothing to do yet. Its directory is made first and removed
// last, so that whatever there is of it can be found from there. A tmpfs is mounted on the directory and all other
// mounts of the slot lie within it, so that one unmount removes them: each waits for all processors.
type slot struct {
	ID    string
	Kinds []string // the namespaces it has: net, uts, ipc
	Addr  netip.Addr
}

func (r *Runtime) slotDir(id string) string { return filepath.Join(r.cfg.RunDir, "slots", id) }

// newID is the name of a slot or container: random, of hexadecimal digits.
func newID() string {
	var b [32]byte
	rand.Read(b[:]) // never fails, says its documentation
	return hex.EncodeToString(b[:])
}

// makeSlot makes a slot with these namespaces; the network is connected if net is one of them.
func (r *Runtime) makeSlot(ctx context.Context, kinds []string) (_ *slot, err error) {
	done, err := r.slowly(ctx)
	if err != nil {
		return nil, err
	}
	defer done()
	s := &slot{ID: newID()[:32], Kinds: kinds}
	dir := r.slotDir(s.ID)
	if err := os.MkdirAll(dir, 0o711); err != nil {
		return nil, fmt.Errorf("containerd: %w", err)
	}
	started := make(chan error, 1)
	go func() { started <- r.startShim(ctx, s.ID) }()
	defer func() {
		err = errors.Join(err, <-started)
		if err != nil {
			err = errors.Join(err, r.removeSlot(context.WithoutCancel(ctx), s))
		}
	}()
	if err := mountSlot(dir); err != nil {
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
			s.Addr, err = r.net.Connect(s.ID)
		}
		return err
	})
}

// removeSlot undoes makeSlot, and also what is left of one half-made or half-removed.
func (r *Runtime) removeSlot(ctx context.Context, s *slot) error {
	dir := r.slotDir(s.ID)
	// The shim takes a while to end, and the kernel to let go of the rest; neither waits for the other.
	freed := make(chan error, 1)
	go func() {
		freed <- errors.Join(unmountSlot(dir), r.net.Disconnect(s.ID, s.Addr)) // the veth goes with its namespace
	}()
	if err := errors.Join(r.stopShim(ctx, s.ID), <-freed); err != nil {
		return err
	}
	return os.RemoveAll(dir)
}

// startShim starts a shim for the containers to come. containerd knows it as a sandbox.
//
// That is so only in this process: the sandbox service of containerd 1.7 fails on its own events when it is
// called over its socket. There the first container of a pod starts the shim and the others join
// it, by an annotation.
func (r *Runtime) startShim(ctx context.Context, id string) error {
	if r.server == nil {
		return nil
	}
	opts, err := typeurl.MarshalAny(r.runtimeOptions())
	if err != nil {
		return fmt.Errorf("containerd: %w", err)
	}
	_, err = r.client.SandboxStore().Create(ctx, sandbox.Sandbox{
		ID:      id,
		Runtime: sandbox.RuntimeOpts{Name: r.bin.shim, Options: opts},
		Spec:    &anypb.Any{TypeUrl: specType, Value: []byte("{}")},
	})
	if err != nil {
		return fmt.Errorf("containerd: sandbox: %w", err)
	}
	if err := r.client.SandboxController().Create(ctx, id); err != nil {
		return fmt.Errorf("containerd: shim: %w", err)
	}
	r.moveShim(ctx, id)
	return nil
}

// stopShim ends the shim of a slot; that there is none is no error.
func (r *Runtime) stopShim(ctx context.Context, id string) error {
	if r.server == nil {
		return nil // it has gone with its last container
	}
	if r.bundles != "" {
		// When a shim leaves, containerd runs it once more to clean up after containers it may have
		// left. There are none, and it is not worth 20 ms: without the bundle it does not start.
		if err := os.RemoveAll(filepath.Join(r.bundles, id)); err != nil {
			return fmt.Errorf("containerd: %w", err)
		}
	}
	ctl := r.client.SandboxController()
	if _, err := ctl.Platform(ctx, id); err == nil {
		// The shim may be gone before it has answered.
		stopErr := ctl.Stop(ctx, id)
		if err := ctl.Shutdown(ctx, id); err != nil && r.shimAlive(ctx, id) {
			return fmt.Errorf("containerd: stop shim: %w", errors.Join(stopErr, err))
		}
	} else if err := r.endShims(ctx, r.socket, func(p shimProcess) bool { return p.id == id }); err != nil {
		// containerd knows of none, but there may be one it has not come to know.
		return err
	}
	// One that was killed has not removed its socket.
	address, err := shim.SocketAddress(ctx, r.socket, id)
	if err != nil {
		return fmt.Errorf("containerd: shim's socket: %w", err)
	}
	if err := shim.RemoveSocket(address); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("containerd: shim's socket: %w", err)
	}
	// Asked for first, because deleting from an empty store is an error of its own.
	if _, err := r.client.SandboxStore().Get(ctx, id); err != nil {
		if errdefs.IsNotFound(err) {
			return nil
		}
		return fmt.Errorf("containerd: sandbox: %w", err)
	}
	if err := r.client.SandboxStore().Delete(ctx, id); err != nil && !errdefs.IsNotFound(err) {
		return fmt.Errorf("containerd: sandbox: %w", err)
	}
	return nil
}

// shimAlive says whether the shim of a slot answers.
func (r *Runtime) shimAlive(ctx context.Context, id string) bool {
	if r.server == nil {
		return true // there may be none, and then the next container starts one
	}
	_, err := r.client.SandboxController().Platform(ctx, id)
	return err == nil
}
