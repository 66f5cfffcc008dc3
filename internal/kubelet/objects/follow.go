package objects

import (
	"context"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/fields"

	"minik8s/internal/api"
	"minik8s/internal/client"
)

const (
	minRewatch = 100 * time.Millisecond
	maxRewatch = 5 * time.Second
)

// follow keeps a book true until ctx ends or the object says that it is immutable. What breaks is begun
// anew, after a pause.
func (k *Keeper) follow(ctx context.Context, ref Ref, b *book) {
	delay := minRewatch
	for ctx.Err() == nil {
		went, final, err := k.watch(ctx, ref, b)
		if final || ctx.Err() != nil {
			return
		}
		if went {
			delay = minRewatch
		} else {
			k.fail(b, err)
		}
		k.log.Info("watch ended, beginning it again", "kind", ref.Kind.String(), "namespace", ref.Namespace, "name", ref.Name, "error", err, "in", delay)
		t := time.NewTimer(delay)
		select {
		case <-t.C:
		case <-ctx.Done():
		}
		t.Stop()
		delay = min(2*delay, maxRewatch)
	}
}

// watch is one watch: first the object if it is there, then its changes. went says that it got as far as
// that, final that no change can come any more.
func (k *Keeper) watch(ctx context.Context, ref Ref, b *book) (went, final bool, err error) {
	w, err := k.client.Watch(ctx, ref.Kind, client.WatchOptions{Namespace: ref.Namespace, Bookmarks: true,
		Fields: fields.OneTermEqualSelector("metadata.name", ref.Name)})
	if err != nil {
		return false, false, err
	}
	defer w.Stop()
	var initial api.Object
	for ev := range w.Events() {
		var obj api.Object
		switch {
		case ev.Type == client.Bookmark && !ev.InitialEnd, ev.Type == client.Deleted && !went:
			continue
		case ev.Type == client.Bookmark:
			went, obj = true, initial
			if k.same(b, obj) {
				continue
			}
		case ev.Type == client.Deleted:
		default:
			obj = ev.Object
			if !went {
				initial = obj
				continue
			}
		}
		k.set(b, obj)
		if obj != nil && immutable(obj) {
			return true, true, nil
		}
	}
	if err = w.Err(); err == nil {
		err = apierrors.NewServerTimeout(ref.Kind.GR(), "watch", 0)
	}
	return went, false, err
}

// same says that the book says already what a watch begun anew has found.
func (k *Keeper) same(b *book, obj api.Object) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if !b.known || (b.obj == nil) != (obj == nil) {
		return false
	}
	return obj == nil || b.obj.GetUID() == obj.GetUID() && b.obj.GetResourceVersion() == obj.GetResourceVersion()
}
