package supervise_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"minik8s/internal/supervise"
)

// journal is what happened, in order.
type journal struct {
	mu    sync.Mutex
	lines []string
}

func (j *journal) add(format string, args ...any) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.lines = append(j.lines, fmt.Sprintf(format, args...))
}

func (j *journal) String() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return strings.Join(j.lines, " ")
}

// steady runs until it is told to stop.
func (j *journal) steady(name string) supervise.Part {
	return supervise.Part{Name: name, Policy: supervise.Must, Run: func(ctx context.Context, ready func()) error {
		j.add("+%s", name)
		ready()
		<-ctx.Done()
		j.add("-%s", name)
		return nil
	}}
}

var quiet = slog.New(slog.DiscardHandler)

func TestStartsInOrderStopsInReverse(t *testing.T) {
	j := &journal{}
	g := supervise.New(quiet, j.steady("a"), j.steady("b"), j.steady("c"))
	ctx, cancel := context.WithCancel(context.Background())
	if err := g.Run(ctx, cancel); err != nil {
		t.Fatal(err)
	}
	if j.String() != "+a +b +c -c -b -a" {
		t.Fatal(j)
	}
}

func TestWaitsForReadiness(t *testing.T) {
	j := &journal{}
	let := make(chan struct{})
	slow := supervise.Part{Name: "slow", Policy: supervise.Must, Run: func(ctx context.Context, ready func()) error {
		<-let
		j.add("ready")
		ready()
		<-ctx.Done()
		return nil
	}}
	beside := j.steady("beside")
	beside.Beside = true
	after := j.steady("after")
	g := supervise.New(quiet, slow, beside, after)
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		for j.String() != "+beside" {
			time.Sleep(time.Millisecond)
		}
		if g.Ready() {
			t.Error("ready before all parts are")
		}
		close(let)
	}()
	if err := g.Run(ctx, func() { cancel() }); err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(j.String(), "+beside ready +after") {
		t.Fatal(j)
	}
}

func TestMustEndsAll(t *testing.T) {
	j := &journal{}
	broken := supervise.Part{Name: "broken", Policy: supervise.Must, Run: func(ctx context.Context, ready func()) error {
		ready()
		return errors.New("the disk is full")
	}}
	err := supervise.New(quiet, j.steady("a"), broken).Run(context.Background(), nil)
	if err == nil || !strings.Contains(err.Error(), "broken: the disk is full") || j.String() != "+a -a" {
		t.Fatal(err, j)
	}
}

// A part that fails before it is ready must not hang the start.
func TestMustFailsAtStart(t *testing.T) {
	broken := supervise.Part{Name: "broken", Policy: supervise.Must, Run: func(context.Context, func()) error { return errors.New("no") }}
	if err := supervise.New(quiet, broken).Run(context.Background(), nil); err == nil {
		t.Fatal("no error")
	}
}

func TestKeepStartsAgainAfterPanics(t *testing.T) {
	runs := 0
	ctx, cancel := context.WithCancel(context.Background())
	g := supervise.New(quiet, supervise.Part{Name: "shaky", Policy: supervise.Keep, Run: func(ctx context.Context, ready func()) error {
		ready()
		if runs++; runs < 3 {
			panic("again")
		}
		cancel()
		<-ctx.Done()
		return nil
	}})
	if err := g.Run(ctx, nil); err != nil {
		t.Fatal(err)
	}
	if st := g.States()[0]; st.Restarts != 2 || runs != 3 {
		t.Fatalf("%+v after %d runs", st, runs)
	}
}

func TestNamesWhatHangs(t *testing.T) {
	never := make(chan struct{})
	defer close(never)
	ctx, cancel := context.WithCancel(context.Background())
	g := supervise.New(quiet, supervise.Part{Name: "stubborn", Policy: supervise.Must, StopTimeout: time.Millisecond,
		Run: func(_ context.Context, ready func()) error { ready(); <-never; return nil }})
	if err := g.Run(ctx, cancel); err == nil || !strings.Contains(err.Error(), "stubborn") {
		t.Fatal(err)
	}
}
