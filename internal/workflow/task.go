package workflow

import (
	"context"
	"fmt"
	"hash/fnv"
	"net/http"
	"regexp"
	"strings"
	"time"

	"minik8s/internal/api/minik8s"
	"minik8s/internal/workflow/asl"
)

// Call is a call of a function.
type Call struct {
	Namespace, Function string
	// ID is the same whenever the same step calls.
	ID          string
	Body        []byte
	ContentType string
	// TraceParent is the trace of the run, with the step as the span that calls (W3C Trace Context).
	TraceParent string
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
	Status int
	// Instance is the pod that had the call; empty: none had it.
	Instance string
	Cold     bool
	// Late: the function's own time was over before it had answered.
	Late bool
	// Stopped: the call could not be made now, or the function's part has ended here and nobody knows how the call has ended. It is to be made again.
	Stopped bool
}

// Caller calls functions.
type Caller interface {
	CallFunction(ctx context.Context, c Call) Result
}

// task calls a Task's function.
func (x *run) task(ctx context.Context, s *asl.State, effective any, c *asl.Context, out *outcome) (any, *asl.Error, error) {
	var limit time.Duration
	var late *asl.Error
	argument, failed, err := evaluate(ctx, x, func() (_ []byte, failed *asl.Error) {
		if limit, late, failed = s.Limit(effective, c); failed != nil {
			return nil, failed
		}
		body, err := asl.Encode(effective)
		if err != nil {
			return nil, &asl.Error{Name: asl.ErrRuntime, Cause: err.Error()}
		}
		return body, nil
	})
	if failed != nil || err != nil {
		return nil, failed, err
	}
	call := Call{Namespace: x.object.Namespace, Function: s.Function, ID: "step-" + c.Random, ContentType: "application/json", TraceParent: x.trace(c.Random), Alone: s.Left != "", Body: argument}
	if word, ok := effective.(string); ok && call.Alone {
		call.Body, call.ContentType = []byte(word), "text/plain; charset=utf-8"
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
		if !r.Stopped && !r.busy() {
			break
		}
		if sleep(within, pause) != nil && ctx.Err() == nil {
			return nil, late, nil
		}
	}
	if r.Fault != "" {
		return nil, errorOf(&r), nil
	}
	if len(r.Body) > asl.MaxData {
		return nil, &asl.Error{Name: asl.ErrDataLimit, Cause: fmt.Sprintf("the function's result has %d bytes, and may have %d", len(r.Body), asl.MaxData)}, nil
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

// busy: the master has as many calls under way as it may. A step has time, and tries again.
func (r *Result) busy() bool {
	return r.Fault == minik8s.FaultPlatform && r.Status == http.StatusTooManyRequests
}

// trace is what a call tells its function of the trace that it is a part of. A run is one trace, whose id is the run's UID without its dashes.
func (x *run) trace(step string) string {
	span := fnv.New64a()
	span.Write([]byte(step)) //nolint:errcheck // it never fails
	return fmt.Sprintf("00-%s-%016x-01", strings.ReplaceAll(string(x.object.UID), "-", ""), span.Sum64())
}

// errorOf is the error that a call without a result is for a state.
func errorOf(r *Result) *asl.Error {
	e := &asl.Error{Name: "Function.Failed", Cause: string(r.Body)}
	switch {
	case r.Fault == minik8s.FaultPlatform:
		e.Name = "Function.Unavailable"
	case r.Fault == minik8s.FaultCaller && r.Status == http.StatusNotFound && r.Instance == "": // an image may answer 404 itself
		e.Name = "Function.NotFound"
	case r.Fault == minik8s.FaultCaller:
		e.Name = "Function.BadRequest"
	case r.Late: // by its own timeoutSeconds, and not by the state's; an image may answer 504 itself
		e.Name = "Function.Timeout"
	default:
		if name := exception(e.Cause); name != "" {
			e.Name = name
		}
	}
	return e
}

// chained are the lines between the traceback of an exception and that of one that came of it, as Python writes them.
var chained = []string{
	"\n\nDuring handling of the above exception, another exception occurred:\n\n",
	"\n\nThe above exception was the direct cause of the following exception:\n\n",
}

var class = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_.<>]*`)

// exception is the class of the exception that a Python traceback ends with, or "" if the text is none. The frames are indented, and the class is in
// the first line that is not; what follows is the rest of its message.
func exception(text string) string {
	for _, between := range chained {
		if i := strings.LastIndex(text, between+"Traceback "); i >= 0 {
			text = text[i+len(between):]
		}
	}
	text = strings.ReplaceAll(strings.TrimPrefix(text, "  + Exception Group "), "\n  | ", "\n") // a group's has a margin
	lines := strings.Split(text, "\n")
	if !strings.HasPrefix(lines[0], "Traceback ") {
		return ""
	}
	for _, line := range lines[1:] {
		if !strings.HasPrefix(line, " ") {
			return class.FindString(line)
		}
	}
	return ""
}
