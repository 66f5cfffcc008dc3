package external

import (
	"errors"
	"sync"
	"time"
)

const (
	// askAgain is after how long etcd is asked again how far a watch is: it does not answer while it is still catching up.
	askAgain = 100 * time.Millisecond
	// lagPause is how long a watch waits before it asks: mostly the changes that it lacks are on their way. It is also the
	// pause when the member that feeds it is behind the leader.
	lagPause = 2 * time.Millisecond
	// silence is how long a stream may say nothing though it was asked. Then its member is away, or cut off.
	silence = 2 * time.Second
)

// errSilent is the error of a stream that does not answer.
var errSilent = errors.New("etcd does not answer on a watch")

// followers are the open watches.
type followers struct {
	mu  sync.Mutex
	all map[*watch]bool
}

func (f *followers) add(w *watch) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.all == nil {
		f.all = map[*watch]bool{}
	}
	f.all[w] = true
}

func (f *followers) remove(w *watch) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.all, w)
}

// want has all watches reach a revision.
func (s *Store) want(revision int64) {
	raise(&s.wanted, revision)
	s.open.mu.Lock()
	defer s.open.mu.Unlock()
	for w := range s.open.all {
		if w.after.Load() < revision {
			select {
			case w.nudge <- struct{}{}:
			default:
			}
		}
	}
}

// progress asks etcd how far a stream is, as long as its watch is behind its target.
type progress struct {
	w    *watch
	ask  func() error
	t    *time.Timer
	last time.Time // when something was heard, or the asking began
}

// check begins to ask, after a moment, if the watch is behind and is not asking already.
func (p *progress) check() {
	if p.t != nil || p.w.after.Load() >= p.w.target() {
		return
	}
	p.last = time.Now()
	p.t = time.NewTimer(lagPause)
}

// heard is called after each message.
func (p *progress) heard(now time.Time) {
	if p.t == nil {
		return
	}
	if p.w.after.Load() >= p.w.target() {
		p.stop()
		return
	}
	p.last = now
	p.t.Reset(lagPause)
}

// late is called when an answer is overdue.
func (p *progress) late(now time.Time) error {
	if p.w.after.Load() >= p.w.target() {
		p.stop()
		return nil
	}
	if now.Sub(p.last) > silence {
		return errSilent
	}
	p.t.Reset(askAgain)
	return p.ask()
}

// timer is nil while nothing is asked.
func (p *progress) timer() <-chan time.Time {
	if p.t == nil {
		return nil
	}
	return p.t.C
}

func (p *progress) stop() {
	if p.t != nil {
		p.t.Stop()
		p.t = nil
	}
}
