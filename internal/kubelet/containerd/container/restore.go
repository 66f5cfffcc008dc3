package container

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/containerd/containerd/api/services/tasks/v1"
	"github.com/containerd/containerd/api/types/task"
	"github.com/containerd/containerd/errdefs"

	"minik8s/internal/clock"
	"minik8s/internal/kubelet/cri"
)

// Remover removes a leftover of an earlier run by remove, which says what it is called in logs: now, or later if it is
// busy.
type Remover func(ctx context.Context, what string, remove func(context.Context) error)

// Restore reads containerd's containers and asks for their tasks. Those that the last run was making or removing
// are removed.
func (s *Set) Restore(ctx context.Context, discard Remover) error {
	list, err := s.cfg.Containerd.Client.ContainerService().List(ctx)
	if err != nil {
		return fmt.Errorf("containerd: containers: %w", err)
	}
	for _, stored := range list {
		ext, ok := stored.Extensions[metaType]
		if !ok {
			continue // not ours; made with ctr
		}
		var m Meta
		if err := json.Unmarshal(ext.GetValue(), &m); err != nil {
			return fmt.Errorf("containerd: container %s: %w", stored.ID, err)
		}
		c := s.container(m)
		if data, err := os.ReadFile(filepath.Join(c.dir, "state.json")); err == nil {
			if err := json.Unmarshal(data, &c.state); err != nil {
				c.state = state{}
			}
		}
		s.add(c)
		if c.state.State == cri.Exited {
			close(c.exited)
			continue
		}
		if c.state.Discarded {
			discard(ctx, "the container "+m.ID, c.Remove)
			continue
		}
		if c.state.StartError != "" {
			continue
		}
		if err := c.restore(ctx, discard); err != nil {
			s.cfg.Log.Warn("a container of the last run was not found again as it should be", "container", m.Name, "pod", m.PodName, "err", err)
		}
	}
	return nil
}

// restore finds out the state of a container that had not ended.
func (c *Container) restore(ctx context.Context, discard Remover) error {
	resp, err := c.set.tasks().Get(ctx, &tasks.GetRequest{ContainerID: c.Meta.ID})
	if err != nil {
		if err := errdefs.FromGRPC(err); !errdefs.IsNotFound(err) {
			c.set.cfg.Log.Warn("a container's task cannot be read", "container", c.Meta.Name, "err", err)
		}
		_, err := os.Stat(c.dir)
		switch {
		case errors.Is(err, os.ErrNotExist): // it is on a tmpfs, so the machine was rebooted
			c.lost()
		case err == nil && c.state.State == cri.Created:
			// Creating it was interrupted, so the kubelet never got its id.
			discard(ctx, "the container "+c.Meta.ID, c.Remove)
		default:
			c.ended(137, clock.Now())
		}
		return nil
	}
	p := resp.Process
	if err := c.openOutput(false); err != nil {
		return err
	}
	c.pid = p.Pid
	switch p.Status {
	case task.Status_STOPPED:
		at := clock.Now()
		if p.ExitedAt != nil {
			at = clock.Of(p.ExitedAt.AsTime())
		}
		c.ended(int32(p.ExitStatus), at)
	case task.Status_CREATED:
		// Who made it and was to start it is gone. The kubelet removes it.
		_, err = c.endUnstarted(ctx)
	default:
		if _, err = c.advance(cri.Running, func(s *state) { s.StartedAt = c.Meta.CreatedAt }); err == nil {
			err = c.killExecs()
		}
	}
	return err
}

// SweepDirs removes the directories of containers that do not exist.
func (s *Set) SweepDirs(ctx context.Context, discard Remover) error {
	entries, err := os.ReadDir(s.cfg.Dir)
	if err != nil {
		return fmt.Errorf("containerd: %w", err)
	}
	for _, e := range entries {
		if s.Get(e.Name()) == nil {
			dir := s.dir(e.Name())
			discard(ctx, dir, func(context.Context) error { return os.RemoveAll(dir) })
		}
	}
	return nil
}
