package container

import (
	"context"
	"time"

	eventsapi "github.com/containerd/containerd/api/events"
	"github.com/containerd/containerd/api/services/tasks/v1"
	"github.com/containerd/containerd/api/types/task"
	"github.com/containerd/containerd/errdefs"
	"github.com/containerd/containerd/events"
	"github.com/containerd/typeurl/v2"

	"minik8s/internal/clock"
	"minik8s/internal/kubelet/containerd/embed"
)

// Stream is a subscription to containerd's events. It keeps what happens until it is followed.
type Stream struct {
	events <-chan *events.Envelope
	errs   <-chan error
}

// Subscribe begins a stream, which Follow takes. It is begun before Restore, so that no exit is missed between the two.
func (s *Set) Subscribe(ctx context.Context) Stream {
	ch, errs := s.cfg.Containerd.Client.EventService().Subscribe(ctx, `namespace==`+embed.Namespace+`,topic~="^/tasks/(exit|oom)"`)
	return Stream{ch, errs}
}

// Follow turns containerd's events into changes of containers, until ctx ends. When the stream
// breaks, which it can with a containerd in another process, it subscribes again and looks at
// everything.
func (s *Set) Follow(ctx context.Context, stream Stream) {
	for wait := time.Duration(0); ; {
		select {
		case <-ctx.Done():
			return
		case e := <-stream.events:
			if e != nil {
				wait = 0
				s.handle(e)
			}
		case err := <-stream.errs:
			if ctx.Err() != nil {
				return
			}
			s.cfg.Log.Warn("containerd's event stream broke", "err", err)
			wait = min(max(2*wait, 100*time.Millisecond), 10*time.Second)
			t := time.NewTimer(wait)
			select {
			case <-ctx.Done():
				t.Stop()
				return
			case <-t.C:
			}
			stream = s.Subscribe(ctx)
			s.resync(ctx)
		}
	}
}

func (s *Set) handle(e *events.Envelope) {
	v, err := typeurl.UnmarshalAny(e.Event)
	if err != nil {
		s.cfg.Log.Warn("an event of containerd cannot be read", "topic", e.Topic, "err", err)
		return
	}
	switch ev := v.(type) {
	case *eventsapi.TaskOOM:
		if c := s.Get(ev.ContainerID); c != nil {
			c.mu.Lock()
			c.state.OOMKilled = true
			c.mu.Unlock()
		}
	case *eventsapi.TaskExit:
		if ev.ID != ev.ContainerID {
			return // the exit of a process started by exec
		}
		if c := s.Get(ev.ContainerID); c != nil {
			// In a goroutine: the wait for one container's output must not delay the next event.
			s.wg.Go(func() { c.ended(int32(ev.ExitStatus), clock.Of(ev.ExitedAt.AsTime())) })
		}
	}
}

// resync reads the state of all containers after a gap in the event stream.
func (s *Set) resync(ctx context.Context) {
	for _, c := range s.All() {
		if !c.Running() {
			continue
		}
		resp, err := s.tasks().Get(ctx, &tasks.GetRequest{ContainerID: c.Meta.ID})
		switch {
		case err == nil && resp.Process.Status == task.Status_STOPPED:
			c.ended(int32(resp.Process.ExitStatus), clock.Of(resp.Process.ExitedAt.AsTime()))
		case err != nil && errdefs.IsNotFound(errdefs.FromGRPC(err)):
			c.ended(137, clock.Now())
		}
	}
	s.cfg.Missed()
}
