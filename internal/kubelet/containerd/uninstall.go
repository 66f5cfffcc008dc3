package containerd

import (
	"context"
	"errors"

	"github.com/containerd/containerd/namespaces"
)

// Uninstall removes every pod there is, what was kept ready for the next ones, and the network's
// rules, and leaves images and directories. Close the runtime after it, and nothing else.
func (r *Runtime) Uninstall(ctx context.Context) error {
	ctx = namespaces.WithNamespace(ctx, Namespace)
	r.spare.stop()
	r.spare.drop(ctx)
	pods, err := r.Pods(ctx)
	errs := []error{err}
	for _, p := range pods {
		for _, c := range p.Containers {
			errs = append(errs, r.RemoveContainer(ctx, c.ID))
		}
		errs = append(errs, r.RemoveSandbox(ctx, p.UID))
	}
	r.spare.stop()
	r.spare.drop(ctx)
	return errors.Join(append(errs, r.net.Teardown(ctx))...)
}
