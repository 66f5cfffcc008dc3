package supervise_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"minik8s/internal/supervise"
)

type source func(ctx context.Context, ready func()) error

func (s source) Run(ctx context.Context, ready func()) error { return s(ctx, ready) }

// A task that panics ends the others, and Wait returns why.
func TestTasksEndTogether(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	tasks := supervise.NewTasks(ctx)
	var order []string
	named := func(name string) supervise.Source {
		return source(func(ctx context.Context, ready func()) error {
			order = append(order, name)
			ready()
			<-ctx.Done()
			return nil
		})
	}
	tasks.InOrder(func() {
		tasks.Go(func(context.Context) error { panic("no!") })
	}, named("a"), named("b"), named("c"))
	err := tasks.Wait()
	var p *supervise.Panic
	if !errors.As(err, &p) || p.Value != "no!" || p.Stack == "" {
		t.Errorf("got %v", err)
	}
	if ctx.Err() != nil || len(order) != 3 || order[0] != "a" || order[2] != "c" {
		t.Errorf("order %v", order)
	}
}

// When a part is started again after a panic, nothing of its earlier run is left.
func TestRestartLeavesNothingBehind(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	var lives atomic.Int32
	first := make(chan struct{})
	g := supervise.New(quiet, supervise.Part{Name: "shaky", Policy: supervise.Keep, Run: func(ctx context.Context, ready func()) error {
		if lives.Add(1) == 1 {
			go func() { <-ctx.Done(); close(first) }()
			panic("no!")
		}
		select {
		case <-first:
			cancel()
		case <-ctx.Done():
			t.Error("what the first life had started was still there")
		}
		ready()
		<-ctx.Done()
		return nil
	}})
	if err := g.Run(ctx, func() {}); err != nil {
		t.Fatal(err)
	}
	if lives.Load() != 2 {
		t.Errorf("%d lives", lives.Load())
	}
}
