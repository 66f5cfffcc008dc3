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

// WithDependents returns options that also delete what the object owns, whatever the default of its kind is.
func WithDependents() *metav1.DeleteOptions {
	return &metav1.DeleteOptions{PropagationPolicy: new(metav1.DeletePropagationBackground)}
}

// Options say how to delete objects.
type Options struct {
	// Request has the options that are sent to the server.
	Request *metav1.DeleteOptions
	// IgnoreNotFound counts an object that is already gone as deleted.
	IgnoreNotFound bool
	// Message returns the line to print for an object whose deletion was requested.
	Message func(api.Object) string
	// Wait waits until the objects are gone. Timeout is for all of them together; 0 means no limit.
	Wait    bool
	Timeout time.Duration
}

// All deletes objects, and counts those that failed. It requests all deletions before it waits for the first, so that
// grace periods run at the same time.
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
