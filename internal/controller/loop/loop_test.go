package loop_test

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"minik8s/internal/controller/loop"
)

// A key is never worked on twice at once, and what is added meanwhile is not lost.
func TestOneKeyAtATime(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	var inside, runs atomic.Int32
	done := make(chan struct{})
	const keys = 4
	var mu sync.Mutex
	busy := map[loop.Key]bool{}
	l := loop.New("test", slog.New(slog.DiscardHandler), func(_ context.Context, k loop.Key) error {
		mu.Lock()
		if busy[k] {
			t.Error("a key is worked on twice at once")
		}
		busy[k] = true
		mu.Unlock()
		inside.Add(1)
		defer func() {
			mu.Lock()
			busy[k] = false
			mu.Unlock()
			if inside.Add(-1) == 0 && runs.Add(1) >= 50 {
				select {
				case <-done:
				default:
					close(done)
				}
			}
		}()
		return nil
	})
	ended := make(chan struct{})
	go func() { defer close(ended); l.Run(ctx, 8) }()
	go func() {
		for i := 0; ctx.Err() == nil; i++ {
			l.Add(loop.Key{Name: string(rune('a' + i%keys))})
		}
	}()
	select {
	case <-done:
	case <-ctx.Done():
		t.Fatal("too few runs")
	}
	cancel()
	<-ended
}

// A failure and a panic come again, the panic is counted, and other keys go on.
func TestFailuresComeAgain(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	var tries atomic.Int32
	done := make(chan struct{})
	l := loop.New("shaky", slog.New(slog.DiscardHandler), func(_ context.Context, k loop.Key) error {
		switch tries.Add(1) {
		case 1:
			return errors.New("no")
		case 2:
			panic("no!")
		case 3:
			close(done)
		}
		return nil
	})
	go l.Run(ctx, 2)
	l.Add(loop.Key{Namespace: "n", Name: "x"})
	select {
	case <-done:
	case <-ctx.Done():
		t.Fatal("it did not come again")
	}
	if loop.Panics()["shaky"] != 1 {
		t.Errorf("counted %v", loop.Panics())
	}
}
