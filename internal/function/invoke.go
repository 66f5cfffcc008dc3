package function

import (
	"context"
	"errors"
	"net/http"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"minik8s/internal/api"
	"minik8s/internal/api/minik8s"
	"minik8s/internal/client"
	"minik8s/internal/clock"
	"minik8s/internal/controller/loop"
)

// Invocation is how a call from another part of the leading master has ended.
type Invocation struct {
	Body               []byte
	ContentType        string
	Branch             string // left, right, or "" if the function has no check
	Fault              string // whose fault it is that there is no result: function, caller or platform
	Status             int    // of HTTP
	Function, Instance string
	Cold               bool
	Late               bool // the function's time was over before it had answered
	Stopped            bool // this master could not make the call, or has stopped before its end was known: it is to be made again
}

// callerWorkflow is who calls by Invoke, as records say it; the id of such a call names its run and step.
const callerWorkflow = "a workflow"

// Invoke calls a function for another part of the master that leads; id and trace are told to the instance. alone: what the function names as
// left and right is not called. What bounds calls by HTTP bounds these, too.
func (s *Server) Invoke(ctx context.Context, namespace, name, id, trace string, body []byte, contentType string, alone bool) Invocation {
	fn, err := client.Get[*minik8s.Function](ctx, s.client, client.Key{Kind: api.Functions, Namespace: namespace, Name: name})
	switch {
	case err == nil:
		err = callable(fn)
	case apierrors.IsNotFound(err):
		err = nil // who has the calls says it
	case !apierrors.IsForbidden(err): // as while the store has no leader: the call is still to be made
		return unmade(err)
	}
	key, takes := loop.Key{Namespace: namespace, Name: name}, amount{calls: 1, bytes: int64(len(body))}
	if err == nil {
		if err = s.under.take(key, takes); err == nil {
			defer s.under.give(key, takes)
		}
	}
	if err != nil {
		return refused(err)
	}
	wait, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	d, _, err := s.here(wait, true)
	if err != nil {
		return unmade(err)
	}
	q := question{id: id, function: key, body: body, contentType: contentType, trace: traceFrom(trace), room: &room{budget: s.under, key: key}}
	defer q.room.free()
	if fn != nil {
		q.uid, q.generation = fn.UID, fn.Generation
		d.await(wait, q)
	}
	var r result
	began, from := metav1.NewTime(clock.Now()), time.Now()
	if alone {
		r, _ = d.step(ctx, q)
		r.function = name
	} else {
		r = d.call(ctx, q)
	}
	if !r.stopped && d.exists(key) {
		s.keepRecord(q, callerWorkflow, began, time.Since(from), r)
	}
	return Invocation{Body: r.body, ContentType: r.contentType, Branch: r.branch, Fault: r.fault, Status: r.status, Function: r.function, Instance: r.instance, Cold: r.cold, Late: r.late, Stopped: r.stopped}
}

// unmade is a call that could not be made now: it is to be made again.
func unmade(err error) Invocation {
	out := refused(err)
	out.Stopped = true
	return out
}

// refused is a call that is not made.
func refused(err error) Invocation {
	out := Invocation{Fault: minik8s.FaultPlatform, Status: http.StatusServiceUnavailable, Body: []byte(err.Error()), ContentType: "text/plain; charset=utf-8"}
	if status := apierrors.APIStatus(nil); errors.As(err, &status) {
		out.Status = int(status.Status().Code)
	}
	return out
}
