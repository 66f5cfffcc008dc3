package registry

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"minik8s/internal/api"
	"minik8s/internal/store"
)

// majorityPause is how long a start waits before it asks again a store that has lost its majority. The store itself waits
// for some seconds.
const majorityPause = 100 * time.Millisecond

// Ensure creates the cluster's own objects, those of them that do not exist. It waits for a majority of the masters for as
// long as it takes, as the store does when it opens: a daemon that starts in such a moment goes on when it has passed.
func (r *Registry) Ensure(ctx context.Context, objs ...api.Object) error {
	for _, obj := range objs {
		if err := r.ensure(ctx, obj); err != nil {
			return fmt.Errorf("%s %s: %w", api.KindOf(obj), obj.GetName(), err)
		}
	}
	return nil
}

func (r *Registry) ensure(ctx context.Context, obj api.Object) error {
	for {
		_, err := r.Create(store.Essential(ctx), Own("create", api.KindOf(obj), obj.GetNamespace(), "", ""), obj, WriteOptions{})
		switch {
		case apierrors.IsAlreadyExists(err): // also if it is not known whether an earlier attempt made it
			return nil
		case !apierrors.IsServiceUnavailable(err) && !apierrors.IsTimeout(err):
			return err
		}
		r.log.Warn("this master waits for a majority of the masters", "error", err)
		select {
		case <-time.After(majorityPause):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
