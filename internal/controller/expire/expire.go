package expire

import (
	"context"
	"errors"
	"log/slog"
	"slices"
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

// most is how many Events are kept, or a fifth more for a while: those that happened last. Pods make three to six each.
const most = 5000

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
	for ctx.Err() == nil {
		wait, room, at, err := e.sweep(ctx)
		if err != nil && ctx.Err() == nil {
			e.log.Warn("could not remove old events", "error", err)
		}
		e.sleep(ctx, wait, room, at)
	}
	return nil
}

// sleep waits that long, but no longer than until room more events have come since the revision at.
func (e *Controller) sleep(ctx context.Context, wait time.Duration, room int, at string) {
	t := time.NewTimer(wait)
	defer t.Stop()
	var come <-chan client.Event
	if at != "" {
		if w, err := e.client.Watch(ctx, api.Events, client.WatchOptions{ResourceVersion: at}); err == nil {
			defer w.Stop()
			come = w.Events()
		}
	}
	for {
		select {
		case <-t.C:
			return
		case <-ctx.Done():
			return
		case ev, ok := <-come:
			if !ok {
				come = nil // the time alone counts then
			}
			if ok && ev.Type == client.Added {
				room--
			}
			if room <= 0 {
				return
			}
		}
	}
}

// sweep removes the events that have expired, or are too many, and returns when the next one expires, how many more may come
// until then, and the revision after which they are to be counted; empty if that is not known.
func (e *Controller) sweep(ctx context.Context) (wait time.Duration, room int, at string, err error) {
	events, at, err := client.All[*corev1.Event](ctx, e.client, api.Events, client.ListOptions{})
	if err != nil {
		return batch, most, "", err
	}
	slices.SortFunc(events, func(a, b *corev1.Event) int { return Last(b).Compare(Last(a)) })
	now, next := e.now(), TTL
	room = most + most/5 // not one by one
	var errs []error
	for i, ev := range events {
		if left := Last(ev).Add(TTL).Sub(now); left > 0 && i < most {
			room--
			next = min(next, left)
			continue
		}
		if err := e.remove(ctx, ev); err != nil {
			errs = append(errs, err)
			next = 0
		}
	}
	return max(next, batch), room, at, errors.Join(errs...)
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
