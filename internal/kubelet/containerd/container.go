package containerd

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/containerd/containerd/api/services/tasks/v1"
	"github.com/containerd/containerd/errdefs"

	"minik8s/internal/kubelet/cri"
)

// StartContainer implements cri.Runtime.
func (r *Runtime) StartContainer(ctx context.Context, id string) error {
	ctx = r.ns(ctx)
	defer r.sandboxes.Busy()()
	c := r.container(id)
	if c == nil {
		return fmt.Errorf("containerd: no container %s", id)
	}
	s, _ := c.get()
	if s.State != cri.Created {
		return nil
	}
	if s.StartError != "" {
		return r.failStart(c, s.StartError, s.ExitCode)
	}
	if err := r.work.Acquire(ctx, 1); err != nil {
		return err
	}
	defer r.work.Release(1)
	_, err := r.client.TaskService().Start(ctx, &tasks.StartRequest{ContainerID: id})
	if err != nil {
		if msg, code, ok := startFailure(err); ok {
			return r.failStart(c, msg, code)
		}
		return fmt.Errorf("containerd: start: %w", fromGRPC(err))
	}
	moved, err := c.advance(cri.Running, func(s *state) { s.StartedAt = time.Now() })
	if moved {
		r.events.send(cri.Event{PodUID: c.meta.PodUID, ContainerID: id})
	}
	return err
}

// failStart makes a container one that has exited without ever running.
func (r *Runtime) failStart(c *container, msg string, code int32) error {
	moved, err := c.advance(cri.Exited, func(s *state) {
		s.StartedAt, s.FinishedAt = time.Time{}, time.Now()
		s.ExitCode, s.StartError = code, msg
	})
	if moved {
		r.events.send(cri.Event{PodUID: c.meta.PodUID, ContainerID: c.meta.ID})
	}
	return errors.Join(&cri.StartError{Message: msg, ExitCode: code}, err)
}

// RemoveContainer implements cri.Runtime.
func (r *Runtime) RemoveContainer(ctx context.Context, id string) error {
	ctx = r.ns(ctx)
	defer r.sandboxes.Busy()()
	c := r.container(id)
	if c == nil {
		return nil
	}
	return r.removeContainer(ctx, c)
}

// removeContainer removes everything that may exist of a container; each step also works if there is nothing to
// remove.
func (r *Runtime) removeContainer(ctx context.Context, c *container) error {
	id := c.meta.ID
	if s, _ := c.get(); s.State == cri.Running {
		if err := r.kill(ctx, c); err != nil {
			return err
		}
	}
	if err := r.deleteTask(ctx, c); err != nil {
		return err
	}
	c.output.Detach()
	if err := r.client.SnapshotService(r.containerd.Snapshotter).Remove(ctx, id); err != nil && !errdefs.IsNotFound(err) {
		return fmt.Errorf("containerd: root file system: %w", err)
	}
	if err := r.client.ContainerService().Delete(ctx, id); err != nil && !errdefs.IsNotFound(err) {
		return fmt.Errorf("containerd: container: %w", err)
	}
	if err := os.RemoveAll(c.dir); err != nil {
		return fmt.Errorf("containerd: %w", err)
	}
	r.mu.Lock()
	delete(r.containers, id)
	r.mu.Unlock()
	return nil
}

func (r *Runtime) addContainer(c *container) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.containers[c.meta.ID] = c
}

// newID is the name of a container or process: random, of hexadecimal digits.
func newID() string {
	var b [32]byte
	rand.Read(b[:]) // never fails, by its documentation
	return hex.EncodeToString(b[:])
}
