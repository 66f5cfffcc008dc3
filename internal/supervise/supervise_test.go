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

// journal records what happened, in order.
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

// steady returns a part that runs until it is told to stop.
func (j *journal) steady(name string) supervise.Part {
	return supervise.Part{Name: name, Policy: supervise.Must, Run: func(ctx context.Context, ready func()) error {
		j.add("+%s", name)
		ready()
		<-ctx.Done()
		j.add("-%s", name)
		return nil
	}}
}

// after returns a part that comes after others.
func after(p supervise.Part, names ...string) supervise.Part {
	p.After = names
	return p
}

var quiet = slog.New(slog.DiscardHandler)

func TestStartsInOrderStopsInReverse(t *testing.T) {
	j := &journal{}
	g := supervise.New(quiet, j.steady("a"), after(j.steady("b"), "a"), after(j.steady("c"), "b"))
	ctx, cancel := context.WithCancel(context.Background())
	if err := g.Run(ctx, cancel); err != nil {
		t.Fatal(err)
	}
	if j.String() != "+a +b +c -c -b -a" {
		t.Fatal(j)
	}
}

// TestOrderIsWhatPartsName checks that After sets the order, not the list.
func TestOrderIsWhatPartsName(t *testing.T) {
	parts := func(j *journal) []supervise.Part {
		return []supervise.Part{after(j.steady("d"), "c", "b"), after(j.steady("b"), "a"), j.steady("a"), after(j.steady("c"), "b")}
	}
	for shift := range 4 {
		j := &journal{}
		p := parts(j)
		g := supervise.New(quiet, append(p[shift:], p[:shift]...)...)
		ctx, cancel := context.WithCancel(context.Background())
		if err := g.Run(ctx, cancel); err != nil {
			t.Fatal(err)
		}
		if j.String() != "+a +b +c +d -d -c -b -a" {
			t.Errorf("from %d: %s", shift, j)
		}
	}
}

// TestOrderThatCannotBe checks that nothing starts, and that the error says why.
func TestOrderThatCannotBe(t *testing.T) {
	j := &journal{}
	for want, parts := range map[string][]supervise.Part{
		`part a comes after "x"`: {after(j.steady("a"), "x")},
		"in a circle: a, b":      {after(j.steady("a"), "b"), after(j.steady("b"), "a"), j.steady("c")},
	} {
		if err := supervise.New(quiet, parts...).Run(t.Context(), nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
	if j.String() != "" {
		t.Error(j)
	}
}

// TestEndsWhileOthersWait checks that a failing group ends even if some parts have not started yet.
func TestEndsWhileOthersWait(t *testing.T) {
	j := &journal{}
	broken := supervise.Part{Name: "broken", Policy: supervise.Must, Run: func(context.Context, func()) error { return errors.New("no") }}
	err := supervise.New(quiet, after(j.steady("b"), "broken"), broken).Run(t.Context(), nil)
	if err == nil || j.String() != "" {
		t.Fatal(err, j)
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
	g := supervise.New(quiet, slow, j.steady("beside"), after(j.steady("after"), "slow", "beside"))
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
	err := supervise.New(quiet, j.steady("a"), after(broken, "a")).Run(context.Background(), nil)
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

// TestAwait checks that a part waits for what it awaits, but not for ever, and is stopped before it all the same.
func TestAwait(t *testing.T) {
	for _, x := range []struct {
		name     string
		patience time.Duration
		want     string
	}{{"in time", time.Hour, "+slow +first -first -slow"}, {"too late", time.Millisecond, "+first +slow -first -slow"}} {
		t.Run(x.name, func(t *testing.T) {
			j := &journal{}
			let := make(chan struct{})
			slow := supervise.Part{Name: "slow", Policy: supervise.Must, Run: func(ctx context.Context, ready func()) error {
				<-let
				j.add("+slow")
				ready()
				<-ctx.Done()
				j.add("-slow")
				return nil
			}}
			first := j.steady("first")
			run := first.Run
			if x.patience < time.Hour {
				first.Run = func(ctx context.Context, ready func()) error {
					return run(ctx, func() { ready(); close(let) })
				}
			} else {
				close(let)
			}
			first.Await, first.Patience = []string{"slow"}, x.patience
			ctx, cancel := context.WithCancel(t.Context())
			if err := supervise.New(quiet, first, slow).Run(ctx, cancel); err != nil {
				t.Fatal(err)
			}
			if j.String() != x.want {
				t.Error(j)
			}
		})
	}
}
