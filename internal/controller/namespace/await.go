package namespace

import (
	"context"
	"errors"
	"time"

	"minik8s/internal/client"
	"minik8s/internal/controller/loop"
	"minik8s/internal/supervise"
)

const (
	// lookAgain is when a namespace that waits is looked at though nothing has ended: its conditions say
	// how many objects are left.
	lookAgain = 10 * time.Second
	// again is the pause before the look after something came between: a watch broke, an object was made.
	again = 100 * time.Millisecond
)

// await brings the namespace back when what is left in it has gone. It does not block.
func (n *Controller) await(ctx context.Context, key loop.Key, left []remains) {
	ctx, cancel := context.WithTimeout(ctx, lookAgain)
	watches := supervise.NewTasks(ctx)
	for _, r := range left {
		watches.Go(func(ctx context.Context) error { return n.gone(ctx, key.Name, r) })
	}
	go func() {
		defer cancel()
		if watches.Wait() != nil {
			n.loop.AddAfter(key, again)
			return
		}
		n.loop.Add(key)
	}()
}

var errEnded = errors.New("the watch ended, and something is left")

// gone returns nil once as many objects as were left have been deleted.
func (n *Controller) gone(ctx context.Context, ns string, r remains) error {
	w, err := n.client.Watch(ctx, r.kind, client.WatchOptions{Namespace: ns, ResourceVersion: r.revision})
	if err != nil {
		return err
	}
	defer w.Stop()
	for e := range w.Events() {
		switch e.Type {
		case client.Added: // by somebody who did not know yet that the namespace is going
			r.count++
		case client.Deleted:
			r.count--
		}
		if r.count == 0 {
			return nil
		}
	}
	return errEnded
}
