package function

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"sync"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"minik8s/internal/aggregation"
	"minik8s/internal/api"
	"minik8s/internal/api/minik8s"
	"minik8s/internal/client"
	"minik8s/internal/clock"
	"minik8s/internal/controller/loop"
)

// Config is what a Server needs beside its client.
type Config struct {
	// Master is this machine's name. Leader is that of the master that has the calls, or "" while there is none.
	Master string
	Leader func(ctx context.Context) (string, error)
	// Other is the way to another master's API, as one who may call everything: its URL and what asks it. The error is NotFound or ErrNoMaster
	// if there is no such master any more.
	Other func(ctx context.Context, master string) (base string, ask http.RoundTripper, err error)
	Log   *slog.Logger
}

// ErrNoMaster says that a machine is no master.
var ErrNoMaster = errors.New("it is no master")

// Server answers who calls by HTTP, on every master.
type Server struct {
	cfg    Config
	client client.Interface
	under  *budget // calls under way here
	last   *records

	reading  atomic.Int32  // arguments that are on their way
	bodyTime time.Duration // how long a caller may take to send an argument

	mu       sync.Mutex
	dispatch *dispatcher   // nil: this master does not lead, or not yet
	changed  chan struct{} // closed when dispatch changes
	kept     map[loop.Key]*kept
	lost     map[string]time.Time // masters that could not be asked, and when
	asking   chan struct{}        // has one for each question to another master after a call
}

// mostUnderWay is what may be under way on a master. The API server's limits do not apply to the port for calls: this is its only one.
var mostUnderWay = amount{4096, 256 << 20}

// NewServer makes a server; c has the part's rights.
func NewServer(c client.Interface, cfg Config) *Server {
	return &Server{cfg: cfg, client: c, under: newBudget("calls under way on this master", mostUnderWay, 1), bodyTime: bodyTime, last: newRecords(), changed: make(chan struct{}), kept: map[loop.Key]*kept{},
		lost: map[string]time.Time{}, asking: make(chan struct{}, mostAsking)}
}

// Connectors are the subresources, for the API server.
func (s *Server) Connectors() map[string]aggregation.Connector {
	return map[string]aggregation.Connector{
		api.Functions.Plural + "/" + minik8s.FunctionCallSubresource:       s.call,
		api.Functions.Plural + "/" + minik8s.FunctionLoadSubresource:       s.load,
		api.Functions.Plural + "/" + minik8s.FunctionCallsSubresource:      s.calls,
		api.FunctionCalls.Plural + "/" + minik8s.FunctionResultSubresource: s.result,
	}
}

// serve has calls brought to d; leave ends that.
func (s *Server) serve(d *dispatcher) { s.become(nil, d) }
func (s *Server) leave(d *dispatcher) { s.become(d, nil) }

func (s *Server) become(from, to *dispatcher) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.dispatch == to || from != nil && s.dispatch != from {
		return
	}
	s.dispatch = to
	close(s.changed)
	s.changed = make(chan struct{})
}

// patience is how long a call waits for a function to be known on the master that leads, and a question that is no call for a master to lead.
const patience = 15 * time.Second

// forwardedBy is a parameter of a call that another master has passed on: it is not passed on once more.
const forwardedBy = "forwardedBy"

// hereAgain is after how long is looked again which master leads.
const hereAgain = 100 * time.Millisecond

// here is the dispatcher, if this master leads; otherwise the name of the one that does.
func (s *Server) here(ctx context.Context, forwarded bool) (*dispatcher, string, error) {
	for {
		s.mu.Lock()
		d, changed := s.dispatch, s.changed
		s.mu.Unlock()
		if d != nil {
			return d, "", nil
		}
		if !forwarded {
			leader, err := s.cfg.Leader(ctx)
			if err != nil && ctx.Err() == nil {
				return nil, "", err
			}
			if leader != "" && leader != s.cfg.Master {
				return nil, leader, nil
			}
		}
		select {
		case <-changed:
		case <-time.After(hereAgain): // another one may lead by now
		case <-ctx.Done():
			return nil, "", errNobody
		}
	}
}

// keepRecord keeps how a call went, in memory and in the log.
func (s *Server) keepRecord(q question, caller string, began metav1.Time, took time.Duration, res result) {
	millis := func(d time.Duration) float64 { return float64(d.Microseconds()) / 1e3 }
	r := &record{function: q.function, result: res, FunctionRecord: minik8s.FunctionRecord{ID: q.id, Caller: caller, Time: began, TookMillis: millis(took), QueuedMillis: millis(res.queued),
		Cold: res.cold, Status: res.status, Fault: res.fault, Instance: res.instance, Trace: traceID(q.trace), Steps: res.steps}}
	s.last.add(r)
	s.cfg.Log.Debug("function called", "function", q.function, "call", q.id, "caller", caller, "took", took, "queued", res.queued, "cold", res.cold, "status", res.status, "fault", res.fault, "instance", res.instance, "trace", r.Trace)
}

// errNobody means that no master leads.
var errNobody = apierrors.NewServiceUnavailable("no master leads at this moment; try again")

// call answers functions/NAME/call.
func (s *Server) call(w http.ResponseWriter, r *aggregation.Connected) error {
	who := r.User
	if from := r.Header.Get(headerCaller); from != "" && r.Query.Has(forwardedBy) {
		who += " for " + from
	}
	return s.answer(w, r.Request, r.Object.(*minik8s.Function), r.Query, who)
}

// answer answers one call. caller is told in the call's object, if there comes one.
func (s *Server) answer(w http.ResponseWriter, r *http.Request, fn *minik8s.Function, query url.Values, caller string) error {
	if err := callable(fn); err != nil {
		return err
	}
	how, err := mannerOf(r, query, fn)
	if err != nil {
		return err
	}
	key := keyOf(fn)
	body, held, err := s.read(w, r, key, maxBody)
	if err != nil {
		return err
	}
	a := &asked{q: question{id: how.id, function: key, body: body, contentType: r.Header.Get("Content-Type"), trace: traceOf(r.Header), room: held, uid: fn.UID, generation: fn.Generation},
		limit: limitOf(fn), how: how, query: query, caller: caller, forwarded: query.Get(forwardedBy) != ""}
	if a.q.id == "" {
		a.q.id = newID()
	}
	a.leave = func() {
		held.free()
		s.under.give(key, amount{calls: 1})
	}
	if err := s.under.take(key, amount{calls: 1}); err != nil {
		held.free()
		return err
	}
	defer func() {
		if !a.outlives {
			a.leave()
		}
	}()
	w.Header().Set(headerTrace, a.q.trace)
	if how.later && len(body) > maxKept {
		return apierrors.NewRequestEntityTooLargeError(fmt.Sprintf("the body of a call that nobody waits for may have %d bytes: wait for the result", maxKept))
	}
	return s.bring(w, r, a)
}

// callable refuses (503) calls of a function of which its status says why it cannot be called.
func callable(fn *minik8s.Function) error {
	if c := apimeta.FindStatusCondition(fn.Status.Conditions, minik8s.FunctionReady); c != nil && c.Status == metav1.ConditionFalse && fn.Status.ObservedGeneration == fn.Generation {
		return apierrors.NewServiceUnavailable(fmt.Sprintf("function %s cannot be called: %s: %s", fn.Name, c.Reason, c.Message))
	}
	return nil
}

// asked is one call of somebody, until he has his answer.
type asked struct {
	q         question
	limit     time.Duration
	how       manner
	query     url.Values
	caller    string
	forwarded bool // by another master

	leave    func() // ends what counts of it
	outlives bool   // its caller is gone before its end is known: somebody else calls leave
}

// bring brings a call to the master that leads. While nothing of it has begun, a master that has gone, or that leads no more, is no reason to give
// up before the time of the call is over.
func (s *Server) bring(w http.ResponseWriter, r *http.Request, a *asked) error {
	ctx, cancel := context.WithTimeout(r.Context(), a.limit)
	defer cancel()
	for {
		begun, err := s.try(ctx, w, r, a)
		if begun {
			return err
		}
		if a.forwarded {
			w.Header().Set(headerUnsent, "true") // whoever has passed it on looks again who leads
			return err
		}
		select {
		case <-time.After(hereAgain):
		case <-ctx.Done():
			return err
		}
	}
}

// forwardedFor is how long a call that another master has passed on waits for this one to lead.
const forwardedFor = time.Second

// try makes one attempt. begun: something of the call may have been done, or nothing is to be done any more.
func (s *Server) try(ctx context.Context, w http.ResponseWriter, r *http.Request, a *asked) (begun bool, err error) {
	look := ctx
	if a.forwarded {
		var cancel context.CancelFunc
		look, cancel = context.WithTimeout(ctx, forwardedFor)
		defer cancel()
	}
	d, leader, err := s.here(look, a.forwarded)
	switch {
	case err != nil:
		return false, err
	case d == nil:
		return s.forward(ctx, w, r, a, leader)
	case a.how.later:
		return s.begin(ctx, w, d, a)
	}
	return s.wait(ctx, w, r, d, a)
}

// begin has a call made for which nobody waits.
func (s *Server) begin(ctx context.Context, w http.ResponseWriter, d *dispatcher, a *asked) (begun bool, err error) {
	q := a.q
	q.room = nil // its caller is gone before its end: what its results take is counted by who carries it
	err = d.accept(ctx, q, a.caller, metav1.NewTime(clock.Now()), nil)
	if apierrors.IsAlreadyExists(err) {
		if err = s.same(ctx, a.q); apierrors.IsNotFound(err) {
			return false, err // it is about to be there
		}
	}
	if deposed(err) {
		return false, err
	}
	if err == nil {
		accepted(w, a.q, a.how)
	}
	return true, err
}

// deposed reports whether a write was refused since this master leads no more.
func deposed(err error) bool { return apierrors.ReasonForError(err) == api.ReasonDeposed }

// wait makes a call, and answers with its result or, if that takes longer than its caller waits, with its id.
func (s *Server) wait(ctx context.Context, w http.ResponseWriter, r *http.Request, d *dispatcher, a *asked) (begun bool, err error) {
	if !d.await(ctx, a.q) {
		return false, apierrors.NewServiceUnavailable(fmt.Sprintf("function %s is not known yet; try again", a.q.function.Name))
	}
	began, from := metav1.NewTime(clock.Now()), time.Now()
	done := make(chan result, 1)
	q := a.q
	go func() { // what an instance has begun goes on, and counts, also without its caller
		res := d.call(context.WithoutCancel(ctx), q)
		if !res.stopped && d.exists(q.function) {
			s.keepRecord(q, a.caller, began, time.Since(from), res)
		}
		done <- res
	}()
	told := func(res result) (begun bool, err error) {
		if res.stopped {
			a.q, a.forwarded = *res.rest, false // another master goes on, from where the call is
			return false, errStopped
		}
		send(w, a.q, res)
		return true, nil
	}
	timer := time.NewTimer(a.how.wait)
	defer timer.Stop()
	select {
	case res := <-done:
		return told(res)
	case <-timer.C:
		ours := make(chan result, 1)
		if d.accept(r.Context(), a.q, a.caller, began, ours) == nil {
			a.outlives = true
			go func() {
				res := <-done
				a.leave()
				ours <- res
			}()
			accepted(w, a.q, a.how)
			return true, nil
		}
		// It is under way and cannot be kept, as where its argument is too long: its caller waits on.
		select {
		case res := <-done:
			return told(res)
		case <-r.Context().Done():
		}
	case <-r.Context().Done():
	}
	a.outlives = true // nobody is there
	go func() {
		<-done
		a.leave()
	}()
	return true, nil
}
