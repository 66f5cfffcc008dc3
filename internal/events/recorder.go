package events

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"

	"minik8s/internal/api"
	"minik8s/internal/client"
	"minik8s/internal/clock"
)

const (
	// queueLen is how many events may wait to be written; when that many wait, the oldest is dropped, and counted, for each new one. The store keeps no more
	// than 5,000 for long (controller/expire), so an event that waits behind so many would be written only to be removed.
	queueLen = 6000
	// writeTimeout bounds one write, so that an API that hangs holds up nothing else.
	writeTimeout = 10 * time.Second
	// drainTimeout bounds the writing of queued events after the end of Run's context.
	drainTimeout = 500 * time.Millisecond
)

// Recorder takes events and writes them in the background. Set Client, Component and Host through
// New; the zero Recorder drops everything.
type Recorder struct {
	// Client writes the events.
	Client client.Interface
	// Component is the reporting component: "kubelet", "default-scheduler". Host is its node, or empty.
	Component, Host string

	log     *slog.Logger
	now     func() time.Time
	mu      sync.Mutex
	queue   []record
	wake    chan struct{}
	dropped atomic.Uint64
	spent   atomic.Int64 // the last time stamp used in a name, so that names are unique
}

// record is an event on its way to the writer.
type record struct {
	ref                    corev1.ObjectReference
	eventtype, reason, msg string
	at                     time.Time
}

// New makes a recorder; call its Run once, in a goroutine. log may be nil.
func New(c client.Interface, component, host string, log *slog.Logger) *Recorder {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	return &Recorder{Client: c, Component: component, Host: host, log: log,
		now: clock.Now, wake: make(chan struct{}, 1)}
}

// Event records that something happened to obj. eventtype is corev1.EventTypeNormal or EventTypeWarning, reason one
// CamelCase word. It never blocks.
func (r *Recorder) Event(obj api.Object, eventtype, reason, messageFmt string, args ...any) {
	r.EventRef(Ref(obj), eventtype, reason, messageFmt, args...)
}

// EventRef is Event for a reference to an object, or to a part of one (ref.FieldPath "spec.containers{web}").
func (r *Recorder) EventRef(ref corev1.ObjectReference, eventtype, reason, messageFmt string, args ...any) {
	if r == nil || r.wake == nil {
		return
	}
	msg := messageFmt
	if len(args) > 0 {
		msg = fmt.Sprintf(messageFmt, args...)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.queue) >= queueLen {
		r.dropped.Add(1)
		r.queue[0] = record{}
		r.queue = r.queue[1:]
	}
	r.queue = append(r.queue, record{ref: ref, eventtype: eventtype, reason: reason, msg: clip(msg), at: r.now()})
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// next takes the event that has waited longest; false if none waits.
func (r *Recorder) next() (rec record, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.queue) == 0 {
		r.queue = nil // empty: release the memory of a burst
		return record{}, false
	}
	rec, r.queue[0] = r.queue[0], record{}
	r.queue = r.queue[1:]
	return rec, true
}

// Dropped is how many events were thrown away because the queue was full: the oldest.
func (r *Recorder) Dropped() uint64 { return r.dropped.Load() }

// Run writes events until ctx ends, then, for a moment, those that are still queued.
func (r *Recorder) Run(ctx context.Context) {
	c := newCorrelator()
	for ctx.Err() == nil {
		if rec, ok := r.next(); ok {
			r.write(ctx, c, rec)
			continue
		}
		select {
		case <-r.wake:
		case <-ctx.Done():
		}
	}
	r.drain(ctx, c)
}

func (r *Recorder) drain(ctx context.Context, c *correlator) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), drainTimeout)
	defer cancel()
	for ctx.Err() == nil {
		rec, ok := r.next()
		if !ok {
			return
		}
		r.write(ctx, c, rec)
	}
}

// Ref is the reference by which an event names obj.
func Ref(obj api.Object) corev1.ObjectReference {
	ref := corev1.ObjectReference{Namespace: obj.GetNamespace(), Name: obj.GetName(),
		UID: obj.GetUID(), ResourceVersion: obj.GetResourceVersion()}
	if k := api.KindOf(obj); k != nil {
		ref.Kind, ref.APIVersion = k.Kind, k.APIVersion()
	}
	return ref
}

// maxMessage is what the API accepts in Event.message, in bytes.
const maxMessage = 1024

func clip(s string) string {
	if len(s) <= maxMessage {
		return s
	}
	return s[:maxMessage-3] + "..."
}
