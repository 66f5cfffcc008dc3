package function

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"

	"golang.org/x/net/http/httpguts"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"minik8s/internal/api/minik8s"
	"minik8s/internal/controller/loop"
	"minik8s/internal/function/post"
)

// The headers between the platform and instances, and of answers.
const (
	headerCall     = "X-Minik8s-Call"     // the call's id
	headerTimeout  = "X-Minik8s-Timeout"  // seconds that are left
	headerOutcome  = "X-Minik8s-Outcome"  // ok, function, caller
	headerBranch   = "X-Minik8s-Branch"   // left, right
	headerFault    = "X-Minik8s-Fault"    // whose fault it is that there is no result
	headerFunction = "X-Minik8s-Function" // the one that gave the result
	headerCold     = "X-Minik8s-Cold"     // an instance was started for the call
)

const (
	// maxBody is what an argument or a result may have, in bytes.
	maxBody = 8 << 20
	// maxSteps is how many functions a chain may call: one that never ends is the function's mistake.
	maxSteps = 1000
	// maxContentType is what a type may have, in bytes.
	maxContentType = 1024
	// slack is how much later than in time an instance may say that a call has ended.
	slack = 500 * time.Millisecond
)

// question is one call.
type question struct {
	id          string
	function    loop.Key
	body        []byte
	contentType string
	trace       string // as in headerTrace
	room        *room  // that its results take

	// The function as it was when it was called: neither an older version of it, nor one of that name that has been deleted since, gets the
	// call. Empty: any.
	uid        types.UID
	generation int64
}

// result is how a call went.
type result struct {
	status      int    // of HTTP
	fault       string // empty: none
	contentType string
	body        []byte
	function    string
	instance    string
	queued      time.Duration
	cold        bool
	steps       int32
	trace       string

	branch  string
	broke   bool      // the instance broke the call off
	gone    bool      // nothing was sent, since the function has been deleted
	late    bool      // the function's time was over before it had answered
	stopped bool      // the master stopped before it was known: whoever leads then may call again
	rest    *question // of a call that the master's stop has ended: what is still to be done
}

func failed(fault string, status int, format string, args ...any) result {
	return result{status: status, fault: fault, contentType: "text/plain; charset=utf-8", body: []byte(fmt.Sprintf(format, args...))}
}

// call calls a function, and those that come after it.
func (d *dispatcher) call(ctx context.Context, q question) result {
	var total result
	for steps := int32(1); ; steps++ {
		if steps > maxSteps {
			r := failed(minik8s.FaultFunction, http.StatusLoopDetected, "the chain has called %d functions and does not end; the last was %s", maxSteps, q.function.Name)
			r.steps, r.function = maxSteps, q.function.Name
			return r
		}
		r, next := d.step(ctx, q)
		r.function, r.steps = q.function.Name, steps
		r.queued += total.queued
		r.cold = r.cold || total.cold
		if r.stopped {
			r.rest = &q
			return r
		}
		if r.fault != "" || next == "" || next == minik8s.FunctionReturn {
			return r
		}
		total = r
		q.function.Name, q.body, q.contentType, q.uid, q.generation = next, r.body, r.contentType, "", 0
	}
}

// step calls one function, and says which comes next.
func (d *dispatcher) step(ctx context.Context, q question) (r result, next string) {
	for {
		p := d.pool(q.function)
		there := p != nil || d.ended() || d.stored(ctx, q)
		if p == nil && there { // this master has only begun to lead, or the function is new
			wait, cancel := context.WithTimeout(ctx, patience)
			d.await(wait, q)
			cancel()
			p = d.pool(q.function)
		}
		switch {
		case p != nil:
		case d.ended():
			return ended(errStopped, q.function.Name), ""
		case there:
			return failed(minik8s.FaultPlatform, http.StatusServiceUnavailable, "function %s is not known yet; try again", q.function.Name), ""
		default:
			return failed(minik8s.FaultCaller, http.StatusNotFound, "there is no function %s in namespace %s", q.function.Name, q.function.Namespace), ""
		}
		r, next = d.stepIn(ctx, p, q)
		if !r.gone || ctx.Err() != nil || !d.stored(ctx, q) {
			return r, next
		}
		// Another function has the name by now, whose pool is about to be there.
	}
}

// stepIn is step by one pool.
func (d *dispatcher) stepIn(ctx context.Context, p *pool, q question) (r result, next string) {
	began := time.Now()
	p.mu.Lock()
	fn := p.fn
	if fn == nil {
		why := p.why
		p.mu.Unlock()
		return ended(why, q.function.Name), ""
	}
	p.count(1, began)
	p.mu.Unlock()
	defer func() {
		p.mu.Lock()
		p.count(-1, time.Now())
		p.mu.Unlock()
	}()
	limit := time.Duration(fn.Spec.TimeoutSeconds) * time.Second
	ctx, cancel := context.WithTimeout(ctx, limit+slack) // an instance ends a call in time, and says so
	defer cancel()
	r = d.send(ctx, p, fn, q, began.Add(limit))
	p.ended(q.function, r, time.Since(began))
	switch {
	case r.fault != "":
	case r.branch == "left":
		next = fn.Spec.Left
	default:
		next = fn.Spec.Right
	}
	return r, next
}

// ended is the result of a call whose function is not here any more.
func ended(why error, name string) result {
	if errors.Is(why, errStopped) {
		r := failed(minik8s.FaultPlatform, http.StatusServiceUnavailable, "%v", errStopped)
		r.stopped = true
		return r
	}
	r := failed(minik8s.FaultCaller, http.StatusNotFound, "function %s has been deleted", name)
	r.gone = true
	return r
}

// send sends a call to one instance after the other, until one has got a part of it.
func (d *dispatcher) send(ctx context.Context, p *pool, fn *minik8s.Function, q question, deadline time.Time) result {
	var queued time.Duration
	cold := false
	for {
		began := time.Now()
		at, started, err := p.acquire(ctx, func() { d.scale.Add(q.function) })
		queued += time.Since(began)
		cold = cold || started
		var r result
		switch {
		case errors.Is(err, errGone), errors.Is(err, errStopped):
			r = ended(err, fn.Name)
		case err != nil:
			r = failed(minik8s.FaultPlatform, http.StatusGatewayTimeout, "function %s had no instance with room for %v; its condition Ready, and its pods, say why", fn.Name, queued.Round(time.Millisecond))
		case time.Until(deadline) < time.Millisecond: // the time of the call has gone by in the queue
			p.release(at.instance)
			r = failed(minik8s.FaultPlatform, http.StatusGatewayTimeout, "function %s had no instance with room for %v, which is its time", fn.Name, queued.Round(time.Millisecond))
		default:
			var refused bool
			r, refused = d.ask(ctx, at, q, deadline)
			if refused {
				p.refused(at.instance, look)
				p.release(at.instance)
				if fn.Spec.Retry != minik8s.RetryNever && ctx.Err() == nil {
					continue
				}
				r.instance = at.pod
				break
			}
			if r.broke {
				p.broke(at.instance, look)
			}
			p.release(at.instance)
			r.instance = at.pod
		}
		r.queued, r.cold = queued, cold
		return r
	}
}

// ask sends a call to an instance. refused: the instance has taken nothing of it.
func (d *dispatcher) ask(ctx context.Context, i place, q question, deadline time.Time) (r result, refused bool) {
	headers := []post.Header{{Name: headerTrace, Value: q.trace}, {Name: headerCall, Value: q.id},
		{Name: headerTimeout, Value: strconv.FormatFloat(time.Until(deadline).Seconds(), 'f', 3, 64)}}
	if q.contentType != "" {
		headers = append(headers, post.Header{Name: "Content-Type", Value: q.contentType})
	}
	way, err := post.Send(ctx, i.to, headers, q.body, func(resp *http.Response) error {
		body, err := gather(io.LimitReader(resp.Body, maxBody+1), resp.ContentLength, q.room.take)
		if err == nil {
			r = answered(resp, body)
		}
		return err
	})
	if err == nil {
		return r, false
	}
	if apierrors.IsTooManyRequests(err) {
		return failed(minik8s.FaultPlatform, http.StatusServiceUnavailable, "the function has answered, and there is no room for its result: %v", err), false
	}
	switch {
	case ctx.Err() != nil:
		r = failed(minik8s.FaultFunction, http.StatusGatewayTimeout, "the function did not answer within its time")
		r.late = true
		return r, false
	case way == post.Sent:
		r = failed(minik8s.FaultFunction, http.StatusBadGateway, "the instance ended while it had the call: %v", err)
		if !time.Now().Before(deadline) {
			r = failed(minik8s.FaultFunction, http.StatusGatewayTimeout, "the function did not answer within its time, and its instance has ended with it")
			r.late = true
		}
		r.broke = true
		return r, false
	case way == post.Impossible: // nor would any other instance
		return failed(minik8s.FaultPlatform, http.StatusInternalServerError, "the call cannot be sent: %v", err), false
	}
	return failed(minik8s.FaultPlatform, http.StatusBadGateway, "instance %s cannot be reached: %v", i.pod, err), true
}

// answered is what an instance's answer means. Images that know nothing of outcomes say it by their status.
func answered(resp *http.Response, body []byte) result {
	if len(body) > maxBody {
		return failed(minik8s.FaultFunction, http.StatusBadGateway, "the result has more than %d bytes", maxBody)
	}
	if resp.StatusCode < 200 || resp.StatusCode >= 300 && resp.StatusCode < 400 || resp.StatusCode >= 600 {
		return failed(minik8s.FaultFunction, http.StatusBadGateway, "the function's image answered with status %d; expected 2xx with the result, 4xx for the caller's mistakes, or 5xx for its own", resp.StatusCode)
	}
	r := result{status: resp.StatusCode, contentType: resp.Header.Get("Content-Type"), body: body, branch: resp.Header.Get(headerBranch)}
	if !httpguts.ValidHeaderFieldValue(r.contentType) || len(r.contentType) > maxContentType {
		r.contentType = "application/octet-stream" // it goes on to others
	}
	switch outcome := resp.Header.Get(headerOutcome); {
	case outcome == "ok":
	case outcome == minik8s.FaultCaller || outcome == "" && resp.StatusCode >= 400 && resp.StatusCode < 500:
		r.fault = minik8s.FaultCaller
	case outcome == minik8s.FaultFunction || resp.StatusCode >= 500:
		r.fault = minik8s.FaultFunction
		r.late = outcome != "" && resp.StatusCode == http.StatusGatewayTimeout // an image's own 504 says nothing of its time
	}
	return r
}
