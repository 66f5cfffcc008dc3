package shutdown

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"minik8s/internal/kubelet/plan/plantest"
	"minik8s/internal/logind"
)

// stage is a machine and a node that write down what happens, in order. A pod ends when the test says so.
type stage struct {
	t       *testing.T
	down    bool
	granted time.Duration
	words   chan bool // what the machine says next
	cut     chan struct{}
	pods    []*corev1.Pod

	mu     sync.Mutex
	lines  []string
	noted  chan struct{}
	ending map[types.UID]chan struct{}
}

func newStage(t *testing.T, pods ...*corev1.Pod) *stage {
	return &stage{t: t, granted: time.Hour, words: make(chan bool, 8), cut: make(chan struct{}), pods: pods,
		noted: make(chan struct{}, 100), ending: map[types.UID]chan struct{}{}}
}

func (s *stage) note(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lines = append(s.lines, fmt.Sprintf(format, args...))
	s.noted <- struct{}{}
}

// next waits until so many lines are there, and checks them.
func (s *stage) next(want ...string) {
	s.t.Helper()
	for range want {
		select {
		case <-s.noted:
		case <-time.After(10 * time.Second):
			s.t.Fatalf("not in time: %q, there is %q", want, s.lines)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	slices.Sort(s.lines[:len(want)])
	slices.Sort(want)
	if !slices.Equal(s.lines[:len(want)], want) {
		s.t.Fatalf("got %q, want %q", s.lines, want)
	}
	s.lines = s.lines[len(want):]
}

// hold sets the pods of the node.
func (s *stage) hold(pods ...*corev1.Pod) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pods = pods
}

func (s *stage) end(pod string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	close(s.ending[types.UID(pod)])
}

func (s *stage) Next(ctx context.Context) (bool, error) {
	select {
	case down := <-s.words:
		return down, nil
	case <-s.cut:
		return false, errors.New("cut")
	case <-ctx.Done():
		return false, ctx.Err()
	}
}
func (s *stage) ShuttingDown(context.Context) (bool, error) { return s.down, nil }
func (s *stage) RaiseMaxDelay(_ context.Context, wish time.Duration) (time.Duration, error) {
	return min(wish, s.granted), nil
}
func (s *stage) Inhibit(context.Context, string, string) (io.Closer, error) {
	s.note("lock")
	return closer(func() { s.note("unlock") }), nil
}
func (s *stage) Close() {}

type closer func()

func (c closer) Close() error { c(); return nil }

func (s *stage) SetShuttingDown(_ context.Context, down bool) { s.note("down %v", down) }
func (s *stage) Pods() []*corev1.Pod {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.pods
}

func (s *stage) EndPod(uid types.UID, within time.Duration) <-chan struct{} {
	ch := make(chan struct{})
	s.mu.Lock()
	s.ending[uid] = ch
	s.mu.Unlock()
	s.note("end %s within %s", uid, within)
	return ch
}

// run runs a Manager until the test ends.
func (s *stage) run(p Periods) (stop func()) {
	ctx, cancel := context.WithCancel(s.t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		New(Config{Periods: p, Log: slog.New(slog.NewTextHandler(s.t.Output(), nil)),
			Open: func(context.Context) (Conn, error) { return s, nil }}, s).Run(ctx)
	}()
	stop = sync.OnceFunc(func() { cancel(); <-done })
	s.t.Cleanup(stop)
	return stop
}

func pod(name string, change ...func(*corev1.Pod)) *corev1.Pod {
	p := plantest.Pod(name, change...)
	p.UID = types.UID(name)
	return p
}

var periods = Periods{All: 40 * time.Second, Critical: 10 * time.Second}

// The Node is told first, the critical pods end last, and the lock is released when all have ended. A shutdown that is
// called off takes it again.
func TestShutdown(t *testing.T) {
	s := newStage(t, pod("dns", priority(2_000_000_000)), pod("a"), pod("b"))
	s.run(periods)
	s.next("lock")
	s.words <- true
	s.next("down true", "end a within 30s", "end b within 30s")
	s.end("a")
	s.end("b")
	s.next("end dns within 10s")
	s.words <- true // once more does nothing
	s.end("dns")
	s.next("unlock")
	s.hold()
	s.words <- false
	s.next("down false", "lock")
	s.words <- true
	s.next("down true", "unlock")
}

// A pod that was assigned just before the scheduler saw the shutdown is waited for too.
func TestPodThatArrivesMeanwhile(t *testing.T) {
	s := newStage(t, pod("a"))
	s.run(periods)
	s.next("lock")
	s.words <- true
	s.next("down true", "end a within 30s")
	s.hold(pod("a"), pod("late"))
	s.end("a")
	s.next("end late within 30s")
	s.end("late")
	s.next("unlock")
}

// An ordinary end of the daemon ends no pod, also in the middle of a shutdown.
func TestOrdinaryEnd(t *testing.T) {
	s := newStage(t, pod("a"), pod("dns", priority(2_000_000_000)))
	stop := s.run(periods)
	s.next("lock")
	stop()
	s.next("unlock")
	stop = s.run(periods)
	s.next("lock")
	s.words <- true
	s.next("down true", "end a within 30s")
	stop()
	s.next("unlock")
}

// A pod that does not end does not hold the machine for longer than its group's time; what the machine grants bounds
// that.
func TestPodThatDoesNotEnd(t *testing.T) {
	s := newStage(t, pod("deaf"), pod("dns", priority(2_000_000_000)))
	s.granted = 400 * time.Millisecond
	s.run(periods)
	s.next("lock")
	s.words <- true
	s.next("down true", "end deaf within 150ms")
	s.next("end dns within 50ms")
	s.end("dns")
	s.next("unlock")
}

// A daemon that starts in the middle of a shutdown takes no lock, and ends what still runs.
func TestStartDuringAShutdown(t *testing.T) {
	s := newStage(t, pod("a"))
	s.down = true
	s.run(periods)
	s.next("down true", "end a within 30s")
	s.end("a")
	s.words <- false
	s.next("down false", "lock")
}

// Where there is no logind, or it is not wanted, nothing runs on.
func TestNothingToWaitFor(t *testing.T) {
	log := slog.New(slog.DiscardHandler)
	New(Config{Log: log}, nil).Run(t.Context())
	New(Config{Periods: periods, Log: log, Open: func(context.Context) (Conn, error) {
		return nil, fmt.Errorf("%w: no bus", logind.ErrNone)
	}}, nil).Run(t.Context())
}

// A connection that was lost is made again, and the lock taken again.
func TestLostConnection(t *testing.T) {
	s := newStage(t)
	s.run(periods)
	s.next("lock")
	s.cut <- struct{}{}
	s.next("unlock", "lock")
}
