package namespace

import (
	"context"
	"sync"
	"time"

	"minik8s/internal/client"
	"minik8s/internal/controller/loop"
)

const (
	// lookAgain is when a namespace that waits is looked at though nothing has ended: its conditions say
	// how many objects are left.
	lookAgain = 10 * time.Second
	// again is the pause before the look after something came between: a watch broke, an object was made.
	again = 50 * time.Millisecond
)

// await brings the namespace back when what is left in it has gone. It does not block.
func (n *Controller) await(ctx context.Context, key loop.Key, left []remains) error {
	ctx, cancel := context.WithTimeout(ctx, lookAgain)
	var watches []client.Watcher
	for _, r := range left {
		w, err := n.client.Watch(ctx, r.kind, client.WatchOptions{Namespace: key.Name, ResourceVersion: r.revision})
		if err != nil {
			cancel() // ends those that are open
			return err
		}
		watches = append(watches, w)
	}
	var wg sync.WaitGroup
	for i, w := range watches {
		wg.Go(func() {
			if !gone(w, left[i].count) {
				cancel() // one that broke, or all have waited long enough
			}
		})
	}
	go func() {
		wg.Wait()
		emptied := ctx.Err() == nil
		cancel()
		if emptied {
			n.loop.Add(key)
		} else {
			n.loop.AddAfter(key, again)
		}
	}()
	return nil
}

// gone follows a watch until so many objects have been deleted; false if it ended before.
func gone(w client.Watcher, count int) bool {
	defer w.Stop()
	for e := range w.Events() {
		switch e.Type {
		case client.Added: // created before its maker knew that the namespace is going
			count++
		case client.Deleted:
			count--
		}
		if count == 0 {
			return true
		}
	}
	return false
}
