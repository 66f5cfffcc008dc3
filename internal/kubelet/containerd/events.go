package containerd

import (
	"context"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	eventsapi "github.com/containerd/containerd/api/events"
	"github.com/containerd/containerd/events"
	"github.com/containerd/typeurl/v2"

	"minik8s/internal/kubelet/containerd/embed"
	"minik8s/internal/kubelet/cri"
)

const (
	// flushTime is how long the report of an exit waits until the container's last output is logged.
	flushTime = time.Second
)

// stream is a subscription to containerd's events.
type stream struct {
	events <-chan *events.Envelope
	errs   <-chan error
}

func (r *Runtime) subscribe(ctx context.Context) stream {
	ch, errs := r.client.EventService().Subscribe(ctx, `namespace==`+embed.Namespace+`,topic~="^/tasks/(exit|oom)"`)
	return stream{ch, errs}
}

// follow turns containerd's events into changes of containers, until ctx ends. When the stream
// breaks, which it can with a containerd in another process, it subscribes again and looks at
// everything.
func (r *Runtime) follow(ctx context.Context, s stream) {
	for wait := time.Duration(0); ; {
		select {
		case <-ctx.Done():
			return
		case e := <-s.events:
			if e != nil {
				wait = 0
				r.handle(ctx, e)
			}
		case err := <-s.errs:
			if ctx.Err() != nil {
				return
			}
			r.cfg.Log.Warn("containerd's event stream broke", "err", err)
			wait = min(max(2*wait, 100*time.Millisecond), 10*time.Second)
			t := time.NewTimer(wait)
			select {
			case <-ctx.Done():
				t.Stop()
				return
			case <-t.C:
			}
			s = r.subscribe(ctx)
			r.resync(ctx)
		}
	}
}

func (r *Runtime) handle(ctx context.Context, e *events.Envelope) {
	v, err := typeurl.UnmarshalAny(e.Event)
	if err != nil {
		r.cfg.Log.Warn("an event of containerd cannot be read", "topic", e.Topic, "err", err)
		return
	}
	switch ev := v.(type) {
	case *eventsapi.TaskOOM:
		if c := r.container(ev.ContainerID); c != nil {
			c.mu.Lock()
			c.state.OOMKilled = true
			c.mu.Unlock()
		}
	case *eventsapi.TaskExit:
		if ev.ID != ev.ContainerID {
			return // the exit of a process started by exec
		}
		if c := r.container(ev.ContainerID); c != nil {
			// In a goroutine: the wait for one container's output must not delay the next event.
			r.wg.Go(func() { r.recordExit(c, int32(ev.ExitStatus), ev.ExitedAt.AsTime()) })
			return
		}
		r.wg.Go(func() { r.shimExited(ctx, ev.ContainerID) })
	}
}

// quickEnd is within how long a program that cannot be executed ends.
const quickEnd = 5 * time.Second

// looksDamaged reports whether a container has ended like a program with damaged files, which cannot be executed or
// loaded.
func looksDamaged(s state) bool {
	switch s.ExitCode {
	case 126, 127, 255, 128 + 4, 128 + 7, 128 + 11: // not executable, not found, runc's; SIGILL, SIGBUS, SIGSEGV
		return s.FinishedAt.Sub(s.StartedAt) < quickEnd
	}
	return false
}

// recordExit records a container's exit and sends an event.
func (r *Runtime) recordExit(c *container, code int32, at time.Time) {
	if s, _ := c.get(); s.State == cri.Exited || c.exitedDiscarded() {
		return
	}
	c.output.Wait(flushTime)
	oom := code != 0 && oomKills(c.meta.Cgroup) > 0
	moved, err := c.advance(cri.Exited, func(s *state) {
		s.ExitCode, s.FinishedAt = code, at
		s.OOMKilled = s.OOMKilled && code != 0 || oom
		if s.StartedAt.IsZero() {
			// It ended before the event of its start.
			s.StartedAt = at
		}
	})
	if err != nil {
		r.cfg.Log.Warn("a container's exit could not be written down", "container", c.meta.Name, "err", err)
	}
	if moved {
		if s, _ := c.get(); c.meta.Image != "" && looksDamaged(s) {
			r.images.RepairLater(c.meta.Image)
		}
		r.events.send(cri.Event{PodUID: c.meta.PodUID, ContainerID: c.meta.ID})
	}
}

// recordLost records the end of a container that existed when the machine went down. Whether and how it had exited
// before is not known.
func (r *Runtime) recordLost(c *container) {
	began, ended := c.meta.CreatedAt, time.Now()
	// It ended before the machine was started. The clock may have been set since, so the times are checked.
	if at := bootTime(); at.After(began) && at.Before(ended) {
		ended = at
	}
	if ended.Before(began) {
		ended = began
	}
	if _, err := c.advance(cri.Exited, func(s *state) {
		s.StartedAt, s.FinishedAt, s.ExitCode, s.Lost = began, ended, 137, true
	}); err != nil {
		r.cfg.Log.Warn("a container's end could not be written down", "container", c.meta.Name, "err", err)
	}
}

// bootTime is when the machine was booted, by the present clock.
func bootTime() time.Time {
	return time.Now().Add(-embed.Uptime())
}

// shimExited handles the end of a shim. If a pod still has it, its containers are killed, because without a shim
// their exits would not be reported, and the sandbox counts as broken.
func (r *Runtime) shimExited(ctx context.Context, sandbox string) {
	r.mu.Lock()
	var rec *record
	for _, x := range r.records {
		if x.Sandbox.ID == sandbox && x.Whole {
			rec = x
		}
	}
	if rec == nil {
		r.mu.Unlock()
		return
	}
	broken := *rec
	broken.Whole = false
	r.records[rec.Config.PodUID] = &broken
	r.mu.Unlock()
	r.cfg.Log.Warn("the shim of a pod has ended; the pod's containers are ended with it",
		"namespace", rec.Config.PodNamespace, "pod", rec.Config.PodName)
	if err := r.writeRecord(&broken); err != nil {
		r.cfg.Log.Warn("a sandbox could not be recorded as broken", "err", err)
	}
	for _, c := range r.containersOf(rec.Config.PodUID) {
		if err := r.deleteByRunc(ctx, c.meta.ID); err != nil {
			r.cfg.Log.Warn("a container without a shim could not be ended", "container", c.meta.Name, "err", err)
		}
		r.recordExit(c, 137, time.Now())
	}
	r.events.send(cri.Event{PodUID: rec.Config.PodUID})
}

// oomKills is how many processes of a cgroup the OOM killer has killed.
func oomKills(cgroup string) int {
	for _, f := range []struct{ path, key string }{
		{filepath.Join("/sys/fs/cgroup/memory", cgroup, "memory.oom_control"), "oom_kill "},
		{filepath.Join("/sys/fs/cgroup", cgroup, "memory.events"), "oom_kill "},
	} {
		data, err := os.ReadFile(f.path)
		if err != nil {
			continue
		}
		for line := range strings.Lines(string(data)) {
			if v, ok := strings.CutPrefix(strings.TrimSpace(line), f.key); ok {
				n, err := strconv.Atoi(v)
				if err == nil {
					return n
				}
			}
		}
	}
	return 0
}
