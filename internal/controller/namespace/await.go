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
	// lookAgain is after how long a waiting namespace is reconciled although not all is deleted, because its
	// conditions say how many objects are left.
	lookAgain = 10 * time.Second
	// retryPause is the pause before the next round after a watch broke or an object was created in the namespace.
	retryPause = 100 * time.Millisecond
)

// requeueWhenEmpty queues the namespace again when the objects left in it are deleted. It does not block.
func (n *Controller) requeueWhenEmpty(ctx context.Context, key loop.Key, left []remains) {
	ctx, cancel := context.WithTimeout(ctx, lookAgain)
	watches := supervise.NewTasks(ctx)
	for _, r := range left {
		watches.Go(func(ctx context.Context) error { return n.awaitDeletions(ctx, key.Name, r) })
	}
	go func() {
		defer cancel()
		if watches.Wait() != nil {
			n.loop.AddAfter(key, retryPause)
			return
		}
		n.loop.Add(key)
	}()
}

var errEnded = errors.New("the watch ended, and something is left")

// awaitDeletions returns nil once as many objects as were left have been deleted.
func (n *Controller) awaitDeletions(ctx context.Context, ns string, r remains) error {
	w, err := n.client.Watch(ctx, r.kind, client.WatchOptions{Namespace: ns, ResourceVersion: r.revision})
	if err != nil {
		return err
	}
	defer w.Stop()
	for e := range w.Events() {
		switch e.Type {
		case client.Added: // by a client that was admitted before the namespace was terminating
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
