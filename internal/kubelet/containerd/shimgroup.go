package containerd

import (
	"context"
	"fmt"

	task "github.com/containerd/containerd/api/runtime/task/v2"
	"github.com/containerd/containerd/errdefs"
	"github.com/containerd/ttrpc"
)

// moveShim puts the shim of a slot into a cgroup of its own kind, so that it outlives whatever the daemon was
// started in. Where cgroups cannot be made it stays: a pod that a restart of a service would end is better
// than none.
func (r *Runtime) moveShim(ctx context.Context, id string) {
	pid, err := r.shimPid(ctx, id)
	if errdefs.IsNotFound(err) {
		return // it has ended
	}
	if err == nil {
		err = r.cgroups.AddShim(pid)
	}
	if err != nil && ctx.Err() == nil {
		r.cfg.Log.Warn("a shim stays in the daemon's cgroup: if that is ended, its pod is too", "err", err)
	}
}

// shimPid asks a shim for its process id.
func (r *Runtime) shimPid(ctx context.Context, id string) (int, error) {
	s, err := r.server.shims.Get(ctx, id)
	if err != nil {
		return 0, fmt.Errorf("containerd: shim: %w", err)
	}
	conn, ok := s.Client().(*ttrpc.Client)
	if !ok {
		return 0, fmt.Errorf("containerd: a shim that speaks %T", s.Client())
	}
	resp, err := task.NewTaskClient(conn).Connect(ctx, &task.ConnectRequest{ID: id})
	if err != nil {
		return 0, fmt.Errorf("containerd: shim: %w", err)
	}
	return int(resp.ShimPid), nil
}
