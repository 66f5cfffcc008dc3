package loop

import (
	"context"

	"minik8s/internal/supervise"
)

// Workers is Run with so many workers, for Drive.
func (l *Loop) Workers(n int) func(ctx context.Context) error {
	return func(ctx context.Context) error { return l.Run(ctx, n) }
}

// Drive is the life of a controller: the sources, each when the one before is complete, and then the
// loops. ready is called when the loops begin. When one of them panics all end, and Drive says why;
// otherwise it returns when ctx ends.
func Drive(ctx context.Context, ready func(), sources []supervise.Source, loops ...func(ctx context.Context) error) error {
	t := supervise.NewTasks(ctx)
	t.InOrder(func() {
		for _, run := range loops {
			t.Go(run)
		}
		ready()
	}, sources...)
	return t.Wait()
}
