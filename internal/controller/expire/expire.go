package expire

import (
	"context"
	"errors"
	"log/slog"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"minik8s/internal/api"
	"minik8s/internal/client"
	"minik8s/internal/clock"
)

// TTL is how long an Event is kept; Kubernetes' default.
const TTL = time.Hour

// batch is the least time between two rounds: events that expire one after the other go together.
const batch = 5 * time.Minute

// Controller is the controller.
type Controller struct {
	client client.Interface
	log    *slog.Logger
	now    func() time.Time
}

// New makes the controller.
func New(c client.Interface, log *slog.Logger) *Controller {
	return &Controller{client: c, log: log, now: clock.Now}
}

// Run works until ctx ends.
func (e *Controller) Run(ctx context.Context, ready func()) error {
	ready()
	for {
		wait, err := e.sweep(ctx)
		if err != nil && ctx.Err() == nil {
			e.log.Warn("could not remove old events", "error", err)
		}
		t := time.NewTimer(wait)
		select {
		case <-t.C:
		case <-ctx.Done():
			t.Stop()
			return nil
		}
	}
}

// sweep removes the events that have expired and returns when the next one does.
func (e *Controller) sweep(ctx context.Context) (time.Duration, error) {
	events, _, err := client.All[*corev1.Event](ctx, e.client, api.Events, client.ListOptions{})
	if err != nil {
		return batch, err
	}
	now, next := e.now(), TTL
	var errs []error
	for _, ev := range events {
		if left := Last(ev).Add(TTL).Sub(now); left > 0 {
			next = min(next, left)
			continue
		}
		if err := e.remove(ctx, ev); err != nil {
			errs = append(errs, err)
			next = 0
		}
	}
	return max(next, batch), errors.Join(errs...)
}

// remove deletes the event only in the version that was read: one that has happened again since is not old.
func (e *Controller) remove(ctx context.Context, ev *corev1.Event) error {
	_, err := e.client.Delete(ctx, client.KeyOf(ev), &metav1.DeleteOptions{
		Preconditions: &metav1.Preconditions{UID: &ev.UID, ResourceVersion: &ev.ResourceVersion}})
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil
	}
	return err
}

// Last is when an event last happened.
func Last(e *corev1.Event) time.Time {
	t := e.CreationTimestamp.Time
	for _, x := range []time.Time{e.FirstTimestamp.Time, e.LastTimestamp.Time, e.EventTime.Time} {
		if x.After(t) {
			t = x
		}
	}
	if e.Series != nil && e.Series.LastObservedTime.After(t) {
		t = e.Series.LastObservedTime.Time
	}
	return t
}
