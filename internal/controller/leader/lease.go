package leader

import (
	"context"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"minik8s/internal/api"
	"minik8s/internal/client"
	"minik8s/internal/clock"
)

// take writes the Lease in this master's name and returns it as written: in a version that no earlier term had. It
// fails if somebody changes the Lease at the same time: between the reading and the writing a stopped leader may have
// lost the leadership.
func (e *Elector) take(ctx context.Context) (*coordinationv1.Lease, error) {
	lease, err := client.Get[*coordinationv1.Lease](ctx, e.Client, client.Key{Kind: api.Leases, Namespace: e.Namespace, Name: e.Name})
	var written api.Object
	switch {
	case apierrors.IsNotFound(err):
		written, err = e.Client.Create(ctx, e.next(nil), client.WriteOptions{})
	case err == nil:
		written, err = e.Client.Update(ctx, e.next(lease), client.WriteOptions{})
	}
	if err != nil {
		return nil, err
	}
	return written.(*coordinationv1.Lease), nil
}

// next is the Lease as we want it; its resourceVersion guards the write.
//
// It has no duration, because it does not run out: to who adds one to renewTime, a Lease that is never renewed would
// look abandoned after some seconds.
func (e *Elector) next(old *coordinationv1.Lease) *coordinationv1.Lease {
	l := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: e.Namespace, Name: e.Name}}
	if old != nil {
		l = old.DeepCopy()
	}
	if h := l.Spec.HolderIdentity; h == nil || *h != e.Identity || l.Spec.LeaseTransitions == nil {
		transitions := int32(0)
		if t := l.Spec.LeaseTransitions; t != nil {
			transitions = *t + 1
		}
		l.Spec.LeaseTransitions = &transitions
	}
	now := metav1.NewMicroTime(clock.Now().Truncate(time.Microsecond))
	if t := l.Spec.AcquireTime; t != nil && t.Equal(&now) { // an equal object would not be written, and the version stay
		now = metav1.NewMicroTime(now.Add(time.Microsecond))
	}
	id := e.Identity
	l.Spec.HolderIdentity, l.Spec.AcquireTime, l.Spec.RenewTime, l.Spec.LeaseDurationSeconds = &id, &now, &now, nil
	return l
}
