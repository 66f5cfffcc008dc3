package deletion

import (
	"context"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"minik8s/internal/api"
	"minik8s/internal/client"
	"minik8s/internal/ctl/exit"
	"minik8s/internal/ctl/session"
	"minik8s/internal/ctl/wait"
)

// WithDependents deletes what an object owns too, whatever its kind does by itself.
func WithDependents() *metav1.DeleteOptions {
	return &metav1.DeleteOptions{PropagationPolicy: new(metav1.DeletePropagationBackground)}
}

// Options are how objects are deleted.
type Options struct {
	// Request is what the server is told.
	Request *metav1.DeleteOptions
	// IgnoreNotFound counts an object that is gone already as deleted.
	IgnoreNotFound bool
	// Message is the line that is printed of an object that was told to go.
	Message func(api.Object) string
	// Wait waits until the objects are gone; Timeout is for all of them together, 0 is as long as it takes.
	Wait    bool
	Timeout time.Duration
}

// All deletes objects, and counts those that failed. All are told to go before the first is waited for: their grace periods
// run side by side.
func All(ctx context.Context, s *session.Session, count *exit.Tally, objects []api.Object, o Options) {
	var leaving []api.Object
	for _, obj := range objects {
		_, err := s.API.Delete(ctx, client.KeyOf(obj), o.Request)
		if o.IgnoreNotFound && apierrors.IsNotFound(err) {
			err = nil
		}
		if count.Add(err); err == nil {
			s.Say("%s", o.Message(obj))
			leaving = append(leaving, obj)
		}
	}
	if o.Wait {
		deadline := s.Now().Add(o.Timeout)
		for _, obj := range leaving {
			left := time.Duration(0)
			if o.Timeout > 0 {
				left = max(deadline.Sub(s.Now()), time.Millisecond)
			}
			if err := wait.Gone(ctx, s, client.KeyOf(obj), obj.GetUID(), left); err != nil {
				count.Add(err)
			}
		}
	}
}
