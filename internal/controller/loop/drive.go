package loop

import (
	"context"

	"minik8s/internal/supervise"
)

// Crew is a loop with as many workers as it is to have, for Drive.
type Crew struct {
	loop    *Loop
	workers int
}

// Workers is the loop with so many workers.
func (l *Loop) Workers(n int) Crew { return Crew{l, n} }

// Drive is the life of a controller: the sources, each when the one before is complete, and then the
// loops. ready is called when the loops begin. When one of them panics all end, and Drive says why;
// otherwise it returns when ctx ends.
func Drive(ctx context.Context, ready func(), sources []supervise.Source, loops ...Crew) error {
	for _, c := range loops {
		defer c.loop.end() // also of one that never began
	}
	t := supervise.NewTasks(ctx)
	t.InOrder(func() {
		for _, c := range loops {
			t.Go(func(ctx context.Context) error { return c.loop.Run(ctx, c.workers) })
		}
		ready()
	}, sources...)
	return t.Wait()
}
