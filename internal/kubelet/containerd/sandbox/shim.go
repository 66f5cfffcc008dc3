package sandbox

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/containerd/containerd/errdefs"
	"github.com/containerd/containerd/sandbox"
	"github.com/containerd/typeurl/v2"
	"google.golang.org/protobuf/types/known/anypb"

	"minik8s/internal/kubelet/containerd/embed"
)

// startShim starts a shim for the pod's later containers. containerd knows it as a sandbox.
//
// That works only with the containerd in this process: the sandbox service of containerd 1.7 fails on its own events
// when it is called over its socket. With an external one the first container of a pod starts the shim and the others
// join it, by an annotation.
func (p *Pool) startShim(ctx context.Context, id string) error {
	if !p.cfg.Containerd.Embedded() {
		return nil
	}
	opts, err := typeurl.MarshalAny(p.cfg.Containerd.RuncOptions())
	if err != nil {
		return fmt.Errorf("containerd: %w", err)
	}
	_, err = p.client.SandboxStore().Create(ctx, sandbox.Sandbox{
		ID:      id,
		Runtime: sandbox.RuntimeOpts{Name: p.cfg.Containerd.Programs.Shim, Options: opts},
		Spec:    &anypb.Any{TypeUrl: embed.SpecType, Value: []byte("{}")},
	})
	if err != nil {
		return fmt.Errorf("containerd: sandbox: %w", err)
	}
	if err := p.client.SandboxController().Create(ctx, id); err != nil {
		return fmt.Errorf("containerd: shim: %w", err)
	}
	p.MoveShim(ctx, id)
	return nil
}

// stopShim ends the shim of a sandbox. It is not an error if there is none.
func (p *Pool) stopShim(ctx context.Context, id string) error {
	if !p.cfg.Containerd.Embedded() {
		return nil // it has ended with its last container
	}
	// When a shim ends, containerd runs the shim's program again to clean up after its containers, which takes 20 ms.
	// There are none here, and without the bundle the program does not start.
	if err := os.RemoveAll(p.cfg.Containerd.Bundle(id)); err != nil {
		return fmt.Errorf("containerd: %w", err)
	}
	ctl := p.client.SandboxController()
	if _, err := ctl.Platform(ctx, id); err == nil {
		// The shim may have ended before it could answer.
		stopErr := ctl.Stop(ctx, id)
		if err := ctl.Shutdown(ctx, id); err != nil && p.ShimAlive(ctx, id) {
			return fmt.Errorf("containerd: stop shim: %w", errors.Join(stopErr, err))
		}
	} else if err := p.cfg.Containerd.EndShims(ctx, func(s embed.Shim) bool { return s.ID == id }); err != nil {
		// containerd knows none, but there may be one that it does not know yet.
		return err
	}
	if err := p.cfg.Containerd.RemoveShimSocket(ctx, id); err != nil {
		return err
	}
	// Checked first, because deleting from an empty store is an error.
	if _, err := p.client.SandboxStore().Get(ctx, id); err != nil {
		if errdefs.IsNotFound(err) {
			return nil
		}
		return fmt.Errorf("containerd: sandbox: %w", err)
	}
	if err := p.client.SandboxStore().Delete(ctx, id); err != nil && !errdefs.IsNotFound(err) {
		return fmt.Errorf("containerd: sandbox: %w", err)
	}
	return nil
}

// ShimAlive reports whether the shim of a sandbox answers.
func (p *Pool) ShimAlive(ctx context.Context, id string) bool {
	if !p.cfg.Containerd.Embedded() {
		return true // if there is none, the next container starts one
	}
	_, err := p.client.SandboxController().Platform(ctx, id)
	return err == nil
}

// MoveShim moves the shim of a sandbox into the cgroup for shims, so that it outlives the daemon's cgroup, that of a
// service for example. Where cgroups cannot be made it stays there, and a warning says what that means.
func (p *Pool) MoveShim(ctx context.Context, id string) {
	pid, err := p.cfg.Containerd.ShimPid(ctx, id)
	if errdefs.IsNotFound(err) {
		return // it has ended
	}
	if err == nil {
		err = p.cfg.Cgroups.AddShim(pid)
	}
	if err != nil && ctx.Err() == nil {
		p.cfg.Log.Warn("a shim stays in the daemon's cgroup: if that is ended, its pod is too", "err", err)
	}
}

// EndOrphans ends the shims of sandboxes that are not in keep: a killed run may have left shims that neither a record
// nor containerd knows.
func (p *Pool) EndOrphans(ctx context.Context, keep map[string]bool) error {
	return p.cfg.Containerd.EndShims(ctx, func(s embed.Shim) bool { return !s.Helper && !keep[s.ID] })
}

// EndLateOrphans ends the shims of sandboxes that do not exist. EndOrphans does not recognise a process that the last
// run had forked but that had not yet executed the shim's program. A sandbox has its directory before its shim is
// started and until after it has ended. before is when this run began, since the machine was booted: a younger shim is
// of this run, or of another client of the same containerd.
func (p *Pool) EndLateOrphans(ctx context.Context, before time.Duration) error {
	return p.cfg.Containerd.EndShims(ctx, func(s embed.Shim) bool {
		if s.Started > before {
			return false
		}
		_, err := os.Stat(p.Dir(s.ID))
		return errors.Is(err, os.ErrNotExist)
	})
}
