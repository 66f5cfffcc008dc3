package embed

import (
	"context"
	"errors"
	"fmt"

	"github.com/containerd/containerd/errdefs"
	"github.com/containerd/containerd/metadata"
	"github.com/containerd/containerd/namespaces"
	"github.com/containerd/containerd/sandbox"
	"google.golang.org/protobuf/types/known/anypb"
)

// retainExits prevents containerd from losing the exits of containers that ended while no daemon ran. When containerd
// loads its shims, it regards a shim without processes that is not a sandbox's as leaked and removes it, and with it
// the exit code and time that only this shim knows. So every container is also registered as a sandbox while the
// shims are loaded; release undoes that.
func retainExits(ctx context.Context, db *metadata.DB) (release func() error, err error) {
	ctx = namespaces.WithNamespace(ctx, Namespace)
	list, err := metadata.NewContainerStore(db).List(ctx)
	if err != nil {
		return nil, fmt.Errorf("containerd: containers: %w", err)
	}
	if len(list) == 0 {
		return func() error { return nil }, nil
	}
	sandboxes := metadata.NewSandboxStore(db)
	var added []string
	for _, c := range list {
		_, err := sandboxes.Create(ctx, sandbox.Sandbox{ID: c.ID, Runtime: sandbox.RuntimeOpts{Name: c.Runtime.Name},
			Spec: &anypb.Any{TypeUrl: SpecType, Value: []byte("{}")}})
		if err != nil && !errdefs.IsAlreadyExists(err) { // left by a run that was killed here
			return nil, fmt.Errorf("containerd: container %s: %w", c.ID, err)
		}
		added = append(added, c.ID)
	}
	return func() error {
		var errs []error
		for _, id := range added {
			if err := sandboxes.Delete(ctx, id); err != nil && !errdefs.IsNotFound(err) {
				errs = append(errs, fmt.Errorf("containerd: container %s: %w", id, err))
			}
		}
		return errors.Join(errs...)
	}, nil
}
