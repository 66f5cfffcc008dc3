package function

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
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
	// Other is the way to another master's API, as one who may call everything: its URL and what asks it.
	Other func(ctx context.Context, master string) (base string, ask http.RoundTripper, err error)
	Log   *slog.Logger
}

// Server answers who calls by HTTP, on every master.
type Server struct {
	cfg    Config
	client client.Interface

	mu       sync.Mutex
	dispatch *dispatcher   // nil: this master does not lead, or not yet
	changed  chan struct{} // closed when dispatch changes
	owned    map[string]bool
	calls    int   // under way
	held     int64 // bytes of their arguments
}

// The most that may be under way on a master: who calls by the port for calls is bounded by nothing else.
const (
	maxCalls = 4096
	maxHeld  = 256 << 20 // bytes
)

// enter counts calls and bytes in, or refuses (429).
func (s *Server) enter(calls int, bytes int64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.calls+calls > maxCalls || s.held+bytes > maxHeld {
		return apierrors.NewTooManyRequests("this master has as many calls under way as it may; call again", 1)
	}
	s.calls, s.held = s.calls+calls, s.held+bytes
	return nil
}

func (s *Server) exit(calls int, bytes int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls, s.held = s.calls-calls, s.held-bytes
}

// NewServer makes a server; c has the part's rights.
func NewServer(c client.Interface, cfg Config) *Server {
	return &Server{cfg: cfg, client: c, changed: make(chan struct{}), owned: map[string]bool{}}
}

// Connectors are the subresources, for the API server.
func (s *Server) Connectors() map[string]aggregation.Connector {
	return map[string]aggregation.Connector{
		api.Functions.Plural + "/" + minik8s.FunctionCallSubresource:       s.call,
		api.Functions.Plural + "/" + minik8s.FunctionLoadSubresource:       s.load,
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

// owns reports whether a FunctionCall is one that this server has under way, since its caller has not waited.
func (s *Server) owns(id string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.owned[id]
}

// patience is how long a call waits for a master to lead, and for a function to be known there.
const patience = 15 * time.Second

// forwardedBy is a parameter of a call that another master has passed on: it is not passed on once more.
const forwardedBy = "forwardedBy"

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
			if err != nil {
				return nil, "", err
			}
			if leader != "" && leader != s.cfg.Master {
				return nil, leader, nil
			}
		}
		select {
		case <-changed:
		case <-time.After(100 * time.Millisecond): // another one may lead by now
		case <-ctx.Done():
			return nil, "", apierrors.NewServiceUnavailable("no master leads at this moment; try again")
		}
	}
}

// call answers functions/NAME/call.
func (s *Server) call(w http.ResponseWriter, r *aggregation.Connected) error {
	return s.answer(w, r.Request, r.Object.(*minik8s.Function), r.Query, "")
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
	ctx, cancel := context.WithTimeout(r.Context(), patience)
	defer cancel()
	d, leader, err := s.here(ctx, query.Get(forwardedBy) != "")
	if err != nil {
		return err
	}
	if d == nil {
		return s.forward(w, r, fn, minik8s.FunctionCallSubresource, query, leader)
	}
	if err := s.enter(1, 0); err != nil {
		return err
	}
	leave := func(bytes int64) { s.exit(1, bytes) }
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if err == nil {
		err = s.enter(0, int64(len(body)))
	}
	if err != nil {
		leave(0)
	}
	if err != nil {
		if tooLong := (*http.MaxBytesError)(nil); errors.As(err, &tooLong) {
			return apierrors.NewRequestEntityTooLargeError(fmt.Sprintf("the body may have %d bytes", maxBody))
		}
		if apierrors.IsTooManyRequests(err) {
			return err
		}
		return apierrors.NewBadRequest("the body ended early: " + err.Error())
	}
	size := int64(len(body))
	if how.id == "" {
		how.id = newID()
	}
	q := question{id: how.id, function: loop.Key{Namespace: fn.Namespace, Name: fn.Name}, body: body, contentType: r.Header.Get("Content-Type"), trace: traceOf(r.Header)}
	w.Header().Set(headerTrace, q.trace)
	if how.later {
		defer leave(size)
		err := s.keep(r.Context(), q, caller, nil)
		if apierrors.IsAlreadyExists(err) && query.Has("id") {
			err = s.same(r.Context(), q)
		}
		if err != nil {
			return err
		}
		accepted(w, q, how)
		return nil
	}
	if !d.await(ctx, q.function) {
		leave(size)
		return apierrors.NewServiceUnavailable(fmt.Sprintf("function %s is not known yet; try again", fn.Name))
	}
	began := metav1.NewTime(clock.Now())
	done := make(chan result, 1)
	go func() {
		defer leave(size)
		done <- d.call(context.WithoutCancel(r.Context()), q)
	}() // what an instance has begun goes on, and counts, also without its caller
	timer := time.NewTimer(how.wait)
	defer timer.Stop()
	select {
	case res := <-done:
		send(w, q, res)
		return nil
	case <-r.Context().Done():
		return nil // nobody is there
	case <-timer.C:
	}
	s.mu.Lock()
	s.owned[q.id] = true
	s.mu.Unlock()
	disown := func() {
		s.mu.Lock()
		delete(s.owned, q.id)
		s.mu.Unlock()
	}
	if err := s.keep(r.Context(), q, caller, &began); err != nil {
		disown()
		return err
	}
	go func() {
		defer disown()
		res := <-done
		if res.stopped {
			return // whoever leads then finds the call in the store
		}
		c := &minik8s.FunctionCall{ObjectMeta: metav1.ObjectMeta{Namespace: q.function.Namespace, Name: q.id}, Spec: specOf(q, caller)}
		res.trace = q.trace
		finish(context.Background(), s.client, c, res, &began)
	}()
	accepted(w, q, how)
	return nil
}

// callable refuses (503) calls of a function of which its status says why it cannot be called.
func callable(fn *minik8s.Function) error {
	if c := apimeta.FindStatusCondition(fn.Status.Conditions, minik8s.FunctionReady); c != nil && c.Status == metav1.ConditionFalse && fn.Status.ObservedGeneration == fn.Generation {
		return apierrors.NewServiceUnavailable(fmt.Sprintf("function %s cannot be called: %s: %s", fn.Name, c.Reason, c.Message))
	}
	return nil
}

func specOf(q question, caller string) minik8s.FunctionCallSpec {
	return minik8s.FunctionCallSpec{Function: q.function.Name, Body: q.body, ContentType: q.contentType, Caller: caller, TraceParent: q.trace}
}

// keep makes a call's object, before its caller has its name. began: it is under way.
func (s *Server) keep(ctx context.Context, q question, caller string, began *metav1.Time) error {
	c := &minik8s.FunctionCall{ObjectMeta: metav1.ObjectMeta{Namespace: q.function.Namespace, Name: q.id}, Spec: specOf(q, caller)}
	obj, err := s.client.Create(ctx, c, client.WriteOptions{})
	if err != nil || began == nil {
		return err
	}
	return writeStatus(ctx, s.client, obj.(*minik8s.FunctionCall), minik8s.FunctionCallStatus{State: minik8s.CallRunning, StartTime: began})
}

// same refuses (409) a call whose id another function's call has: who says one id twice means one call.
func (s *Server) same(ctx context.Context, q question) error {
	c, err := client.Get[*minik8s.FunctionCall](ctx, s.client, client.Key{Kind: api.FunctionCalls, Namespace: q.function.Namespace, Name: q.id})
	if err != nil {
		return err
	}
	if c.Spec.Function != q.function.Name || !bytes.Equal(c.Spec.Body, q.body) {
		return apierrors.NewConflict(api.FunctionCalls.GR(), q.id, fmt.Errorf("it is a call of function %s with its own argument", c.Spec.Function))
	}
	return nil
}

// manner is how a caller wants to be answered.
type manner struct {
	id    string        // the call's, if the caller gives it one: then it is made once
	later bool          // at once, with the call's id
	wait  time.Duration // how long for the result; then with the id
	text  bool          // the id alone
}

// mannerOf reads Prefer (RFC 7240): respond-async, and wait=SECONDS. The parameter wait says it, too.
func mannerOf(r *http.Request, query url.Values, fn *minik8s.Function) (manner, error) {
	how := manner{wait: time.Duration(fn.Spec.TimeoutSeconds)*time.Second + 2*slack, text: query.Has("text")}
	for _, line := range r.Header.Values("Prefer") {
		for word := range strings.SplitSeq(line, ",") {
			name, value, _ := strings.Cut(strings.TrimSpace(word), "=")
			switch strings.ToLower(name) {
			case "respond-async":
				how.later = true
			case "wait":
				if n, err := strconv.Atoi(value); err == nil && n >= 0 {
					how.later, how.wait = false, time.Duration(n)*time.Second
				}
			}
		}
	}
	if v := query.Get("wait"); v != "" {
		d, err := time.ParseDuration(v)
		if err != nil || d < 0 {
			return how, apierrors.NewBadRequest(fmt.Sprintf("wait: %q is no duration, as 10s is", v))
		}
		how.wait = d
	}
	how.id = query.Get("id")
	how.later = how.later || how.wait == 0 || how.id != ""
	return how, nil
}

func newID() string {
	var b [10]byte
	rand.Read(b[:]) //nolint:errcheck // it never fails
	return "call-" + hex.EncodeToString(b[:])
}

// send answers with a result.
func send(w http.ResponseWriter, q question, r result) {
	h := w.Header()
	if r.contentType != "" {
		h.Set("Content-Type", r.contentType)
	}
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Content-Length", strconv.Itoa(len(r.body)))
	h.Set(headerCall, q.id)
	h.Set(headerFunction, r.function)
	if r.cold {
		h.Set(headerCold, "true")
	}
	if r.fault != "" {
		h.Set(headerFault, r.fault)
	}
	w.WriteHeader(r.status)
	w.Write(r.body) //nolint:errcheck // a caller that has gone needs no answer
}

// accepted answers with a call's id.
func accepted(w http.ResponseWriter, q question, how manner) {
	h := w.Header()
	h.Set(headerCall, q.id)
	h.Set("Location", fmt.Sprintf("/apis/minik8s.io/v1/namespaces/%s/functioncalls/%s/result", q.function.Namespace, q.id))
	if how.text {
		h.Set("Content-Type", "text/plain; charset=utf-8")
		w.WriteHeader(http.StatusAccepted)
		io.WriteString(w, q.id+"\n") //nolint:errcheck // as in send
		return
	}
	h.Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusAccepted)
	json.NewEncoder(w).Encode(map[string]string{"id": q.id}) //nolint:errcheck // as in send
}

// result answers functioncalls/ID/result: the result as it came, or 202 while there is none. A PUT gives the call its result, which
// then is not what the function returns.
func (s *Server) result(w http.ResponseWriter, r *aggregation.Connected) error {
	c := r.Object.(*minik8s.FunctionCall)
	if r.Method == http.MethodPut {
		return s.give(w, r, c)
	}
	q := question{id: c.Name, function: loop.Key{Namespace: c.Namespace, Name: c.Spec.Function}}
	if !c.Status.Ended() {
		accepted(w, q, manner{text: r.Query.Has("text")})
		return nil
	}
	status := map[string]int{"": http.StatusOK, minik8s.FaultFunction: http.StatusInternalServerError, minik8s.FaultCaller: http.StatusBadRequest, minik8s.FaultPlatform: http.StatusBadGateway}[c.Status.Fault]
	send(w, q, result{status: status, fault: c.Status.Fault, contentType: c.Status.ContentType, body: c.Status.Result, function: c.Status.Function, cold: c.Status.Cold})
	return nil
}

// give ends a call with a result that somebody else has. Nobody's result is replaced.
func (s *Server) give(w http.ResponseWriter, r *aggregation.Connected, c *minik8s.FunctionCall) error {
	if c.Status.Ended() {
		return apierrors.NewConflict(api.FunctionCalls.GR(), c.Name, errors.New("it has its result already"))
	}
	if err := s.enter(1, maxKept); err != nil {
		return err
	}
	defer s.exit(1, maxKept)
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxKept))
	if tooLong := (*http.MaxBytesError)(nil); errors.As(err, &tooLong) {
		return apierrors.NewRequestEntityTooLargeError(fmt.Sprintf("a result that is kept may have %d bytes", maxKept))
	}
	if err != nil {
		return apierrors.NewBadRequest("the body ended early: " + err.Error())
	}
	now := metav1.NewTime(clock.Now())
	status := minik8s.FunctionCallStatus{State: minik8s.CallSucceeded, StartTime: c.Status.StartTime, EndTime: &now, Function: c.Spec.Function,
		Result: body, ContentType: r.Header.Get("Content-Type")}
	if status.StartTime == nil {
		status.StartTime = &now
	}
	if err := writeStatus(r.Context(), s.client, c, status); err != nil {
		if apierrors.IsInvalid(err) { // it has ended meanwhile
			return apierrors.NewConflict(api.FunctionCalls.GR(), c.Name, errors.New("it has its result already"))
		}
		return err
	}
	w.Header().Set(headerCall, c.Name)
	w.WriteHeader(http.StatusOK)
	return nil
}

// forward passes a call on to the master that has the instances.
func (s *Server) forward(w http.ResponseWriter, r *http.Request, fn *minik8s.Function, sub string, query url.Values, leader string) error {
	base, ask, err := s.cfg.Other(r.Context(), leader)
	if err != nil {
		return apierrors.NewServiceUnavailable(fmt.Sprintf("master %s, which has the calls, cannot be asked: %v", leader, err))
	}
	passed := url.Values{forwardedBy: {s.cfg.Master}}
	for _, name := range []string{"wait", "text", "id"} {
		if v, ok := query[name]; ok {
			passed[name] = v
		}
	}
	to := fmt.Sprintf("%s/apis/minik8s.io/v1/namespaces/%s/functions/%s/%s?%s", base, url.PathEscape(fn.Namespace), url.PathEscape(fn.Name), sub, passed.Encode())
	req, err := http.NewRequestWithContext(r.Context(), r.Method, to, r.Body)
	if err != nil {
		return err
	}
	req.ContentLength = r.ContentLength
	for _, name := range []string{"Content-Type", "Prefer", headerTrace} {
		if v := r.Header.Values(name); len(v) > 0 {
			req.Header[name] = v
		}
	}
	resp, err := ask.RoundTrip(req)
	if err != nil {
		return apierrors.NewServiceUnavailable(fmt.Sprintf("master %s, which has the calls, cannot be asked: %v", leader, err))
	}
	defer resp.Body.Close() //nolint:errcheck // it was only read
	for _, name := range []string{"Content-Type", "Content-Length", "Location", "X-Content-Type-Options", headerCall, headerFault, headerFunction, headerCold, headerTrace} {
		if v := resp.Header.Get(name); v != "" {
			w.Header().Set(name, v)
		}
	}
	w.WriteHeader(resp.StatusCode)
	io.Copy(w, resp.Body) //nolint:errcheck // the length tells the caller
	return nil
}

// ServeHTTP implements http.Handler for the port of calls: POST /NAME, or /NAMESPACE/NAME. Nobody is asked who they are.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	namespace, name, ok := strings.Cut(strings.Trim(r.URL.Path, "/"), "/")
	if !ok {
		namespace, name = metav1.NamespaceDefault, namespace
	}
	switch {
	case r.Method != http.MethodPost:
		w.Header().Set("Allow", http.MethodPost)
		refuse(w, http.StatusMethodNotAllowed, "functions are called by POST")
		return
	case name == "" || strings.Contains(name, "/"):
		refuse(w, http.StatusNotFound, "expected POST /NAME or /NAMESPACE/NAME")
		return
	case r.Header.Get("Origin") != "": // a page in somebody's browser is not who this port is for
		refuse(w, http.StatusForbidden, "not for pages of other sites")
		return
	}
	s.callPlainly(w, r, namespace, name)
}

// refuse says that a request is none that can be answered.
func refuse(w http.ResponseWriter, code int, format string, args ...any) {
	w.Header().Set(headerFault, minik8s.FaultCaller)
	http.Error(w, fmt.Sprintf(format, args...), code)
}

// callPlainly calls a function for somebody who is not asked who he is.
func (s *Server) callPlainly(w http.ResponseWriter, r *http.Request, namespace, name string) {
	fn, err := client.Get[*minik8s.Function](r.Context(), s.client, client.Key{Kind: api.Functions, Namespace: namespace, Name: name})
	if apierrors.IsNotFound(err) {
		refuse(w, http.StatusNotFound, "no such function %s", name)
		return
	}
	if err == nil {
		err = s.answer(w, r, fn, r.URL.Query(), "")
	}
	if err != nil {
		code := http.StatusInternalServerError
		if status := apierrors.APIStatus(nil); errors.As(err, &status) {
			code = int(status.Status().Code)
		}
		w.Header().Set(headerFault, minik8s.FaultPlatform)
		http.Error(w, err.Error(), code)
	}
}

// Serve answers plain HTTP with h until ctx ends.
func Serve(ctx context.Context, l net.Listener, h http.Handler) error {
	srv := &http.Server{Handler: h, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 3 * time.Minute}
	stopped := context.AfterFunc(ctx, func() {
		stop, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		if srv.Shutdown(stop) != nil {
			srv.Close() //nolint:errcheck // no way to handle the error
		}
	})
	defer stopped()
	if err := srv.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}
