package workflow

import (
	"context"
	"regexp"
	"strings"

	"minik8s/internal/workflow/asl"
)

// Call is a call of a function.
type Call struct {
	Namespace, Function string
	// ID is the same whenever the same step calls.
	ID          string
	Body        []byte
	ContentType string
	// Alone: what the function names as left and right is not called.
	Alone bool
}

// Result is how a call has ended.
type Result struct {
	Body        []byte
	ContentType string
	// Branch is left or right if the function says which.
	Branch string
	// Fault is whose fault it is that there is no result: function, caller or platform; empty: there is one.
	Fault string
	// Status is HTTP's.
	Status   int
	Instance string
	Cold     bool
	// Stopped: the function's part has ended here, and nobody knows how the call has ended.
	Stopped bool
}

// Caller calls functions.
type Caller interface {
	CallFunction(ctx context.Context, c Call) Result
}

// task calls a Task's function.
func (x *run) task(ctx context.Context, s *asl.State, effective any, c *asl.Context, out *outcome) (any, *asl.Error, error) {
	limit, late, failed := s.Limit(effective, c)
	if failed != nil {
		return nil, failed, nil
	}
	call := Call{Namespace: x.object.Namespace, Function: s.Function, ID: "step-" + c.Random, ContentType: "application/json", Alone: s.Left != ""}
	if word, ok := effective.(string); ok && call.Alone {
		call.Body, call.ContentType = []byte(word), "text/plain; charset=utf-8"
	} else {
		body, err := asl.Encode(effective)
		if err != nil {
			return nil, &asl.Error{Name: asl.ErrRuntime, Cause: err.Error()}, nil
		}
		call.Body = body
	}
	within := ctx
	if limit > 0 {
		var cancel context.CancelFunc
		within, cancel = context.WithTimeout(ctx, limit)
		defer cancel()
	}
	var r Result
	for pause := firstPause; ; pause = min(2*pause, lastPause) {
		r = x.w.caller.CallFunction(within, call)
		if err := ctx.Err(); err != nil {
			return nil, nil, err // its result counts no more
		}
		if within.Err() != nil {
			return nil, late, nil
		}
		if !r.Stopped {
			break
		}
		if sleep(within, pause) != nil && ctx.Err() == nil {
			return nil, late, nil
		}
	}
	if r.Fault != "" {
		return nil, errorOf(&r), nil
	}
	out.next, out.instance, out.cold = s.Following(r.Branch), r.Instance, r.Cold
	if strings.HasPrefix(r.ContentType, "text/plain") {
		return string(r.Body), nil, nil
	}
	v, err := asl.Decode(r.Body)
	if err != nil {
		return string(r.Body), nil, nil //nolint:nilerr // what is not JSON is a text
	}
	return v, nil, nil
}

// exception is the last line of a traceback.
var exception = regexp.MustCompile(`^([A-Za-z_][A-Za-z0-9_.]*)(:.*)?$`)

// errorOf is the error that a call without a result is for a state.
func errorOf(r *Result) *asl.Error {
	e := &asl.Error{Name: "Function.Failed", Cause: string(r.Body)}
	switch {
	case r.Status == 504:
		e.Name = asl.ErrTimeout
	case r.Fault == "caller" && r.Status == 404:
		e.Name = "Function.NotFound"
	case r.Fault == "caller":
		e.Name = "Function.BadRequest"
	case r.Fault == "platform":
		e.Name = "Function.Unavailable"
	case strings.HasPrefix(e.Cause, "Traceback "):
		text := strings.TrimRight(e.Cause, "\n")
		if m := exception.FindStringSubmatch(text[strings.LastIndexByte(text, '\n')+1:]); m != nil {
			e.Name = m[1]
		}
	}
	return e
}
