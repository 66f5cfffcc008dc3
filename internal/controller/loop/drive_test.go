package loop_test

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"minik8s/internal/controller/loop"
	"minik8s/internal/supervise"
)

type source func(ctx context.Context, ready func()) error

func (s source) Run(ctx context.Context, ready func()) error { return s(ctx, ready) }

// A controller whose source panics before its loops begin ends as a whole, and keeps no key.
func TestDriveEndsWithItsSources(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	l := loop.New("driven", slog.New(slog.DiscardHandler), func(context.Context, loop.Key) error {
		t.Error("the loop began before its sources were complete")
		return nil
	})
	l.Add(loop.Key{Name: "x"})
	good := source(func(ctx context.Context, ready func()) error { ready(); <-ctx.Done(); return nil })
	bad := source(func(context.Context, func()) error { panic("no!") })
	err := loop.Drive(ctx, func() { t.Error("ready") }, []supervise.Source{good, bad}, l.Workers(2))
	var p *supervise.Panic
	if !errors.As(err, &p) || l.Len() != 0 {
		t.Errorf("%v, %d keys left", err, l.Len())
	}
}
