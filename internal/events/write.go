package events

import (
	"context"
	"encoding/json"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"minik8s/internal/api"
	"minik8s/internal/client"
)

// write puts one record into the store. A failed write is logged and not retried: events are best effort, and nothing
// may wait for them.
func (r *Recorder) write(ctx context.Context, c *correlator, rec record) {
	v := c.decide(rec)
	if v.drop {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	if v.existing != nil {
		err := r.countUp(ctx, v, rec)
		if err == nil {
			return
		}
		if !apierrors.IsNotFound(err) {
			r.failed(err)("event not counted", "reason", rec.reason, "object", rec.ref.Name, "error", err)
			return
		}
		delete(c.written, v.id) // it has expired or was deleted: write a new one
	}
	ev := r.build(v, rec)
	if _, err := r.Client.Create(ctx, ev, client.WriteOptions{}); err != nil {
		r.failed(err)("event not written", "reason", rec.reason, "object", rec.ref.Name, "error", err)
		return
	}
	c.wrote(v.id, ev, rec.at)
}

// failed is how to log an error: as a warning, unless it is a matter of course. A part of a master that has been
// deposed still has events to write when it learns of it, and each is refused.
func (r *Recorder) failed(err error) func(msg string, args ...any) {
	if namespaceEnding(err) || apierrors.ReasonForError(err) == api.ReasonDeposed {
		return r.log.Debug
	}
	return r.log.Warn
}

// namespaceEnding reports whether err means that the event's namespace is terminating or deleted, so that the event
// does not matter.
func namespaceEnding(err error) bool {
	return apierrors.IsNotFound(err) || apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause)
}

func (r *Recorder) countUp(ctx context.Context, v decision, rec record) error {
	w := v.existing
	data, err := json.Marshal(map[string]any{
		"count": w.count + 1, "lastTimestamp": metav1.NewTime(rec.at), "message": v.msg,
	})
	if err != nil {
		return err
	}
	key := client.Key{Kind: api.Events, Namespace: w.namespace, Name: w.name}
	if _, err = r.Client.Patch(ctx, key, client.Patch{Type: types.MergePatchType, Data: data}, client.WriteOptions{}); err != nil {
		return err
	}
	w.count++
	w.seen = rec.at
	return nil
}

func (r *Recorder) build(v decision, rec record) *corev1.Event {
	ns := rec.ref.Namespace
	if ns == "" {
		ns = metav1.NamespaceDefault
	}
	at := metav1.NewTime(rec.at)
	return &corev1.Event{
		ObjectMeta:          metav1.ObjectMeta{Namespace: ns, Name: eventName(rec.ref.Name, r.stamp(rec.at.UnixNano()))},
		InvolvedObject:      rec.ref,
		Type:                rec.eventtype,
		Reason:              rec.reason,
		Message:             v.msg,
		Source:              corev1.EventSource{Component: r.Component, Host: r.Host},
		ReportingController: r.Component,
		ReportingInstance:   r.Host,
		FirstTimestamp:      at,
		LastTimestamp:       at,
		Count:               1,
	}
}

// stamp is nano, or a little more if that was used already.
func (r *Recorder) stamp(nano int64) int64 {
	for {
		last := r.spent.Load()
		next := max(nano, last+1)
		if r.spent.CompareAndSwap(last, next) {
			return next
		}
	}
}
