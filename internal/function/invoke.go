package function

import (
	"context"

	"minik8s/internal/api/minik8s"
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
	Stopped            bool // this master has stopped before the end was known
}

// Invoke calls a function for another part of the master that leads; id is told to the instance. alone: what the function names as left and
// right is not called.
func (s *Server) Invoke(ctx context.Context, namespace, name, id string, body []byte, contentType string, alone bool) Invocation {
	wait, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	d, _, err := s.here(wait, true)
	if err != nil {
		return Invocation{Fault: minik8s.FaultPlatform, Status: 503, Body: []byte(err.Error()), ContentType: "text/plain; charset=utf-8", Stopped: true}
	}
	q := question{id: id, function: loop.Key{Namespace: namespace, Name: name}, body: body, contentType: contentType}
	var r result
	if alone {
		r, _ = d.step(ctx, q)
		r.function = name
	} else {
		r = d.call(ctx, q)
	}
	return Invocation{Body: r.body, ContentType: r.contentType, Branch: r.branch, Fault: r.fault, Status: r.status, Function: r.function, Instance: r.instance, Cold: r.cold, Stopped: r.stopped}
}
