package stdio

import (
	"context"
	"errors"
	"io"
	"slices"
	"sync"
	"time"
)

const (
	// backlog is how many pieces of output are buffered for an attached reader before the container blocks.
	backlog = 16
	// patience is how long a container blocks for a reader that has stopped reading.
	patience = 10 * time.Second
	// Silence is how long the output of an exited process may be silent before it counts as ended: a background
	// process may hold it open.
	Silence = 2 * time.Second
)

// ErrTooSlow is the error of a Listener that was detached because it stopped reading.
var ErrTooSlow = errors.New("the attached client has stopped reading; it was detached so that the container can go on")

// Listener gets a copy of a container's output, from the Listener's creation on.
type Listener struct {
	from    *Output
	pieces  chan piece
	closed  chan struct{} // closed by Close: no more pieces are taken
	dropped chan struct{} // closed when it was too slow
}

type piece struct {
	stream string
	data   []byte
}

// listeners are those of one container. The zero value has none.
type listeners struct {
	mu   sync.Mutex
	list []*Listener
}

// Listen makes a Listener. Copy has to be called soon, or the container's output blocks; and Close in the end.
func (o *Output) Listen() *Listener {
	l := &Listener{from: o, pieces: make(chan piece, backlog), closed: make(chan struct{}), dropped: make(chan struct{})}
	o.listeners.mu.Lock()
	defer o.listeners.mu.Unlock()
	o.listeners.list = append(o.listeners.list, l)
	return l
}

// Listeners is how many there are.
func (o *Output) Listeners() int { return len(o.listeners.all()) }

// Close ends it.
func (l *Listener) Close() {
	close(l.closed)
	ls := &l.from.listeners
	ls.mu.Lock()
	defer ls.mu.Unlock()
	ls.list = slices.DeleteFunc(ls.list, func(x *Listener) bool { return x == l })
}

func (ls *listeners) all() []*Listener {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	return slices.Clone(ls.list)
}

// write hands a piece of output to every listener. data is copied.
func (ls *listeners) write(stream string, data []byte) {
	for _, l := range ls.all() {
		p := piece{stream, slices.Clone(data)}
		select {
		case l.pieces <- p:
			continue
		case <-l.closed:
			continue
		default:
		}
		timer := time.NewTimer(patience)
		select {
		case l.pieces <- p:
		case <-l.closed:
		case <-timer.C:
			ls.drop(l)
		}
		timer.Stop()
	}
}

// drop ends a listener that is too slow. Both streams of a container may call it at the same time.
func (ls *listeners) drop(l *Listener) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	if i := slices.Index(ls.list, l); i >= 0 {
		ls.list = slices.Delete(ls.list, i, i+1)
		close(l.dropped)
	}
}

// Copy writes the output until the container has exited and its output has ended, or has been silent for Silence
// since. A writer may be nil. The error is ErrTooSlow if the writers took too long, a writer's error, or that of ctx.
func (l *Listener) Copy(ctx context.Context, stdout, stderr io.Writer, exited <-chan struct{}) error {
	to := map[string]io.Writer{"stdout": stdout, "stderr": stderr}
	ended := l.from.done
	var quiet <-chan time.Time
	for exited != nil || ended != nil {
		select {
		case p := <-l.pieces:
			if err := p.write(to); err != nil {
				return err
			}
			if exited == nil {
				quiet = time.After(Silence)
			}
		case <-exited:
			exited, quiet = nil, time.After(Silence)
		case <-ended:
			ended = nil
		case <-quiet:
			return nil
		case <-l.dropped:
			return ErrTooSlow
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	for { // the pieces from before the end
		select {
		case p := <-l.pieces:
			if err := p.write(to); err != nil {
				return err
			}
		default:
			return nil
		}
	}
}

func (p piece) write(to map[string]io.Writer) error {
	w := to[p.stream]
	if w == nil {
		return nil
	}
	_, err := w.Write(p.data)
	return err
}
