package namespace

import (
	"context"
	"errors"
	"time"

	"minik8s/internal/api"
	"minik8s/internal/client"
	"minik8s/internal/controller/loop"
	"minik8s/internal/informer/reflector"
	"minik8s/internal/supervise"
)

const (
	// lookAgain is after how long a waiting namespace is reconciled although not all is deleted, because its
	// conditions say how many objects are left.
	lookAgain = 10 * time.Second
	// retryPause is the pause before the next round after that.
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

var errLeft = errors.New("something is left")

// awaitDeletions returns nil once as many objects as were left have been deleted; an error if ctx ends before.
func (n *Controller) awaitDeletions(ctx context.Context, ns string, r remains) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	left := r.count
	follow := reflector.Reflector{Client: n.client, Kind: r.kind, Namespace: ns, From: r.revision, Log: n.log,
		Replace: func(items []api.Object, _ string) {
			if left = len(items); left == 0 {
				cancel()
			}
		},
		Apply: func(e client.Event) {
			switch e.Type {
			case client.Added: // by a client that was admitted before the namespace was terminating
				left++
			case client.Deleted:
				left--
			}
			if left == 0 {
				cancel()
			}
		}}
	follow.Run(ctx)
	if left > 0 {
		return errLeft
	}
	return nil
}
