package loop

import (
	"context"

	"minik8s/internal/supervise"
)

// Crew is a loop with its number of workers, for Drive.
type Crew struct {
	loop    *Loop
	workers int
}

// Workers is the loop with so many workers.
func (l *Loop) Workers(n int) Crew { return Crew{l, n} }

// Drive runs a controller: first the sources, each started when the one before it has synced, and then the loops.
// ready is called when the loops start. When one of them panics all end, and the panic is the error; otherwise Drive
// returns nil when ctx ends.
func Drive(ctx context.Context, ready func(), sources []supervise.Source, loops ...Crew) error {
	for _, c := range loops {
		defer c.loop.end() // also of a loop that was never started
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
