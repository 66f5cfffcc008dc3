package containerd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/containerd/containerd/api/services/tasks/v1"
	"golang.org/x/sys/unix"

	"minik8s/internal/kubelet/cri"
)

const (
	// backlog is how many pieces of output wait for an attached reader before the container does.
	backlog = 16
	// attachPatience is how long a container waits for a reader that has stopped reading.
	attachPatience = 10 * time.Second
)

var errTooSlow = errors.New("the attached client has stopped reading; it was detached so that the container can go on")

// tap is one who listens to a container's output beside its log.
type tap struct {
	pieces chan piece
	gone   chan struct{} // closed when nobody takes pieces any more
	slow   chan struct{} // closed when it was given up
}

type piece struct {
	stream string
	data   []byte
}

// taps are those of one container. The zero value has none.
type taps struct {
	mu   sync.Mutex
	list []*tap
}

func (ts *taps) add() *tap {
	t := &tap{pieces: make(chan piece, backlog), gone: make(chan struct{}), slow: make(chan struct{})}
	ts.mu.Lock()
	defer ts.mu.Unlock()
	ts.list = append(ts.list, t)
	return t
}

func (ts *taps) remove(t *tap) {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	ts.list = slices.DeleteFunc(ts.list, func(x *tap) bool { return x == t })
}

func (ts *taps) all() []*tap {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	return slices.Clone(ts.list)
}

// write hands a piece of output to everyone who listens. data is copied.
func (ts *taps) write(stream string, data []byte) {
	for _, t := range ts.all() {
		p := piece{stream, slices.Clone(data)}
		select {
		case t.pieces <- p:
			continue
		case <-t.gone:
			continue
		default:
		}
		timer := time.NewTimer(attachPatience)
		select {
		case t.pieces <- p:
		case <-t.gone:
		case <-timer.C:
			ts.giveUp(t)
		}
		timer.Stop()
	}
}

// giveUp ends a tap. Both streams of a container may come to that at a time.
func (ts *taps) giveUp(t *tap) {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	if i := slices.Index(ts.list, t); i >= 0 {
		ts.list = slices.Delete(ts.list, i, i+1)
		close(t.slow)
	}
}

// Attach implements cri.Runtime.
func (r *Runtime) Attach(ctx context.Context, id string, cfg cri.AttachConfig) error {
	ctx, cancel := context.WithCancel(r.ns(ctx))
	defer cancel()
	c := r.container(id)
	if c == nil {
		return fmt.Errorf("containerd: no container %s", id)
	}
	if s, _ := c.get(); s.State != cri.Running || c.logs == nil {
		return cri.ErrNotRunning
	}
	t := c.logs.taps.add()
	defer c.logs.taps.remove(t)
	defer close(t.gone)
	if cfg.Stdin != nil {
		if err := r.attachInput(ctx, c, cfg.Stdin); err != nil {
			return err
		}
	}
	go r.resize(ctx, id, "", cfg.Resize)
	write := func(p piece) error {
		to := cfg.Stdout
		if p.stream == "stderr" {
			to = cfg.Stderr
		}
		if to == nil {
			return nil
		}
		_, err := to.Write(p.data)
		return err
	}
	// The end has come when the container has exited and its output has ended; or is silent, held open
	// by something that was left behind.
	exited, ended := c.exited, c.logs.done
	var quiet <-chan time.Time
	for exited != nil || ended != nil {
		select {
		case p := <-t.pieces:
			if err := write(p); err != nil {
				return err
			}
			if exited == nil {
				quiet = time.After(silence)
			}
		case <-exited:
			exited, quiet = nil, time.After(silence)
		case <-ended:
			ended = nil
		case <-quiet:
			return nil
		case <-t.slow:
			return errTooSlow
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	for {
		select {
		case p := <-t.pieces:
			if err := write(p); err != nil {
				return err
			}
			continue
		default:
		}
		return nil
	}
}

// attachInput passes input on to the container until one of them ends. A container without input, or
// whose input has ended, takes none, which is no error.
func (r *Runtime) attachInput(ctx context.Context, c *container, from io.Reader) error {
	f, err := os.OpenFile(filepath.Join(c.dir, "stdin"), os.O_WRONLY|unix.O_NONBLOCK, 0)
	switch {
	case errors.Is(err, unix.ENOENT), errors.Is(err, unix.ENXIO):
		return nil
	case err != nil:
		return fmt.Errorf("containerd: attach: %w", err)
	}
	stop := context.AfterFunc(ctx, func() { f.Close() })
	go func() {
		defer stop()
		io.Copy(f, from) //nolint:errcheck // a container need not read all of it
		f.Close()
		if c.meta.StdinOnce {
			r.client.TaskService().CloseIO(context.WithoutCancel(ctx), &tasks.CloseIORequest{ContainerID: c.meta.ID, Stdin: true})
		}
	}()
	return nil
}
