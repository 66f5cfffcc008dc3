package function

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"minik8s/internal/aggregation"
	"minik8s/internal/api"
	"minik8s/internal/api/minik8s"
	"minik8s/internal/client"
	"minik8s/internal/clock"
	"minik8s/internal/controller/loop"
	"minik8s/internal/function/plan"
)

// alone is a server of a master that knows of no other.
func alone(master string) *Server {
	return NewServer(nil, Config{Master: master, Log: slog.New(slog.DiscardHandler), Leader: func(context.Context) (string, error) { return master, nil }})
}

// holds is what calls hold of a server.
func (s *Server) holds() amount {
	s.under.mu.Lock()
	defer s.under.mu.Unlock()
	return s.under.used
}

func callOf(name string, state string) *minik8s.FunctionCall {
	now := metav1.NewTime(clock.Now())
	c := &minik8s.FunctionCall{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}, Spec: minik8s.FunctionCallSpec{Function: "f"},
		Status: minik8s.FunctionCallStatus{State: state}}
	if state != "" {
		c.Status.StartTime = &now
	}
	if c.Status.Ended() {
		c.Status.EndTime = &now
	}
	return c
}

// A call that has ended is not made again because the informer still shows it as one that runs.
func TestAnEndThatIsShownLate(t *testing.T) {
	reg, c := anAPI(t)
	f := controlling(t, reg)
	made, err := f.client.Create(t.Context(), callOf("call", minik8s.CallRunning), client.WriteOptions{})
	if err != nil {
		t.Fatal(err)
	}
	key := loop.Key{Namespace: "default", Name: "call"}
	for shown := false; !shown; time.Sleep(time.Millisecond) {
		_, shown = f.calls.Get(key.Namespace, key.Name)
	}
	shown, _ := f.calls.Get(key.Namespace, key.Name)
	ended := callOf("call", minik8s.CallSucceeded)
	ended.UID = made.GetUID()
	if err := writeStatus(t.Context(), c, ended, ended.Status); err != nil {
		t.Fatal(err)
	}
	f.dispatch.exists = func(loop.Key) bool {
		t.Error("the call is made again")
		return false
	}
	if err := f.begin(t.Context(), key, shown); err != nil {
		t.Fatal(err)
	}
	for f.server.has(key, made.GetUID()) {
		time.Sleep(time.Millisecond)
	}
}

// The leading master is asked by one who may do all, so clients have no part in the path.
func TestPathToTheLeader(t *testing.T) {
	asked := ""
	s := NewServer(nil, Config{Master: "a", Log: slog.New(slog.DiscardHandler), Leader: func(context.Context) (string, error) { return "b", nil },
		Other: func(context.Context, string) (string, http.RoundTripper, error) {
			return "http://b", roundTrip(func(r *http.Request) (*http.Response, error) {
				asked = r.URL.RequestURI()
				return &http.Response{StatusCode: 200, Header: http.Header{}, Body: http.NoBody}, nil
			}), nil
		}})
	for _, x := range []struct{ namespace, name, want string }{
		{"ns", "call-1", "/apis/minik8s.io/v1/namespaces/ns/functioncalls/call-1/result?forwardedBy=a"},
		{"ns", "x?y", ""},
		{"ns", "?watch=1&x=", ""},
		{"kube-system/functions?", "x", "/apis/minik8s.io/v1/namespaces/kube-system%2Ffunctions%3F/functioncalls/x/result?forwardedBy=a"},
	} {
		asked = ""
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.URL.Path = "/apis/minik8s.io/v1/namespaces/" + x.namespace + "/functioncalls/" + x.name + "/result"
		err := s.result(httptest.NewRecorder(), &aggregation.Connected{Request: r, Namespace: x.namespace, Name: x.name, Query: url.Values{}})
		if asked != x.want || apierrors.IsNotFound(err) != (x.want == "") {
			t.Errorf("%s/%s: asked for %q, %v", x.namespace, x.name, asked, err)
		}
	}
}

// Results count until their callers have them, and one for which there is no room is not held.
func TestResultsCount(t *testing.T) {
	const size = 1 << 20
	full := func(w http.ResponseWriter, _ *http.Request) { w.Write(make([]byte, size)) } //nolint:errcheck // a test's
	d := dispatching(t, map[string]http.HandlerFunc{"f": full})
	s := alone("a")
	s.serve(d)
	at := called(s, functionOf("f"))
	defer at.Close()
	for _, x := range []struct {
		room int64
		code int
	}{{4 * size, 200}, {size, 503}, {4 * size, 200}} {
		s.under.most.bytes = x.room
		resp, err := http.Post(at.URL, "", strings.NewReader("x"))
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(resp.Body)
		if err != nil || resp.StatusCode != x.code || x.code == 503 && !strings.Contains(string(body), "no room for its result") {
			t.Errorf("room for %d bytes: %d %.200s, %v", x.room, resp.StatusCode, body, err)
		}
		resp.Body.Close() //nolint:errcheck // it was only read
	}
	at.Close()
	if left := s.holds(); left != (amount{}) {
		t.Errorf("%+v is held when all have their answers", left)
	}
}

// Who does not read his answer is cut off.
func TestAnswersAreReadInTime(t *testing.T) {
	ended := make(chan error, 1)
	at := httptest.NewServer(inPieces(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, err := io.Copy(w, io.LimitReader(zeros{}, 1<<30))
		ended <- err
	}), 50*time.Millisecond))
	defer at.Close()
	c, err := net.Dial("tcp", at.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close() //nolint:errcheck // the test has ended
	if _, err := io.WriteString(c, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-ended:
		if err == nil {
			t.Error("a gigabyte was sent to one who reads nothing")
		}
	case <-time.After(20 * time.Second):
		t.Error("the answer is held for one who does not read it")
	}
}

type zeros struct{}

func (zeros) Read(b []byte) (int, error) { return len(b), nil }

// A call goes to the address at which its instance was when it got it.
func TestAnInstanceGoesBeforeItsCall(t *testing.T) {
	p := &pool{instances: map[types.UID]*instance{}, opened: func() {}}
	p.follow(functionOf("f"), "1")
	p.pod(nil, instanceOf("a", "1", true), func(_ context.Context, _ string, accepts func()) { accepts() })
	at, _, err := p.acquire(t.Context(), func() {})
	if err != nil || at.to.Address == "" {
		t.Fatalf("%+v, %v", at, err)
	}
	before := at.to.Address
	leaving := instanceOf("a", "1", true)
	leaving.DeletionTimestamp = &metav1.Time{Time: time.Now()}
	p.pod(instanceOf("a", "1", true), leaving, nil)
	if at.to.Address != before {
		t.Errorf("the address became %q", at.to.Address)
	}
	// Nobody looks for instances of a function that has gone.
	p.end(errGone)
	never := func(context.Context, string, func()) { t.Error("an instance of a deleted function is looked for") }
	p.broke(at.instance, never)
	p.refused(at.instance, never)
	p.pod(nil, instanceOf("b", "1", true), never)
	if len(p.instances) != 1 {
		t.Error("a deleted function has got an instance")
	}
}

// A master that passes a call on waits longer than the one that has it: that one says when its time is over.
func TestPatienceWithTheLeader(t *testing.T) {
	var left time.Duration
	s := NewServer(nil, Config{Master: "a", Log: slog.New(slog.DiscardHandler), Leader: func(context.Context) (string, error) { return "b", nil },
		Other: func(context.Context, string) (string, http.RoundTripper, error) {
			return "http://b", roundTrip(func(r *http.Request) (*http.Response, error) {
				at, _ := r.Context().Deadline()
				left = time.Until(at)
				return &http.Response{StatusCode: 202, Header: http.Header{}, Body: http.NoBody}, nil
			}), nil
		}})
	fn := functionOf("f")
	at := called(s, fn)
	defer at.Close()
	for _, x := range []struct {
		query string
		size  int
		least time.Duration
	}{{"", 1, limitOf(fn) + patience/2}, {"?wait=1h", 1, time.Hour}, {"", maxKept + 1, 100 * limitOf(fn)}} {
		resp, err := http.Post(at.URL+"/"+x.query, "", bytes.NewReader(make([]byte, x.size)))
		if got := text(t, resp, err); !strings.HasPrefix(got, "202") || left < x.least {
			t.Errorf("%q, %d bytes: %s after %v, want %v at least", x.query, x.size, got, left, x.least)
		}
	}
}

// A call that is under way and cannot be kept is not refused: its caller gets the result.
func TestACallThatCannotBeKept(t *testing.T) {
	refused := make(chan struct{})
	d := dispatching(t, map[string]http.HandlerFunc{"f": func(w http.ResponseWriter, _ *http.Request) {
		<-refused
		io.WriteString(w, "done") //nolint:errcheck // a test's
	}})
	d.accept = func(context.Context, question, string, metav1.Time, <-chan result) error {
		close(refused)
		return apierrors.NewTooManyRequests("full", 1)
	}
	s := alone("a")
	s.serve(d)
	at := called(s, functionOf("f"))
	defer at.Close()
	resp, err := http.Post(at.URL+"/?wait=1ms", "", strings.NewReader("x"))
	if got := text(t, resp, err); got != "200 done" {
		t.Error(got)
	}
	at.Close()
	if left := s.holds(); left != (amount{}) {
		t.Errorf("it still holds %+v", left)
	}
}

// What the results of calls take that nobody waits for is given back with their ends.
func TestResultsOfCallsThatNobodyWaitsForCount(t *testing.T) {
	reg, c := anAPI(t)
	f := controlling(t, reg)
	f.dispatch = dispatching(t, map[string]http.HandlerFunc{"f": func(w http.ResponseWriter, r *http.Request) {
		io.WriteString(w, strings.Repeat("x", 100<<10)) //nolint:errcheck // a test's
	}})
	f.dispatch.accept = f.accept
	f.server.serve(f.dispatch)
	at := called(f.server, functionOf("f"))
	defer at.Close()
	req, err := http.NewRequest("POST", at.URL, strings.NewReader("argument"))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Prefer", "respond-async")
	resp, err := http.DefaultClient.Do(req)
	if got := text(t, resp, err); !strings.HasPrefix(got, "202") {
		t.Fatal(got)
	}
	id := resp.Header.Get("X-Minik8s-Call")
	var left amount
	for began := time.Now(); ; time.Sleep(time.Millisecond) {
		now, err := client.Get[*minik8s.FunctionCall](t.Context(), c, client.Key{Kind: api.FunctionCalls, Namespace: "default", Name: id})
		if left = f.server.holds(); err == nil && now.Status.State == minik8s.CallSucceeded && len(now.Status.Result) == 100<<10 && left == (amount{}) {
			break
		}
		if time.Since(began) > 10*time.Second {
			t.Fatalf("call %q: %+v, %v, and %+v is held", id, now, err, left)
		}
	}
}

// The time of a call that goes by before an instance has room for it is the platform's fault, and the instance is not asked.
func TestTimeThatGoesByInTheQueue(t *testing.T) {
	asked := make(chan struct{}, 2)
	d := dispatching(t, map[string]http.HandlerFunc{"f": func(w http.ResponseWriter, r *http.Request) {
		asked <- struct{}{}
		<-r.Context().Done()
	}})
	p := d.pool(loop.Key{Namespace: "default", Name: "f"})
	fn := *p.fn
	fn.Spec.Concurrency = 1
	p.mu.Lock()
	p.fn = &fn
	p.mu.Unlock()
	ctx, cancel := context.WithCancel(t.Context())
	first := make(chan result, 1)
	q := question{id: "x", function: loop.Key{Namespace: "default", Name: "f"}, room: &room{budget: alone("a").under}}
	go func() { first <- d.send(ctx, p, &fn, q, time.Now().Add(time.Hour)) }()
	<-asked
	second := make(chan result, 1)
	deadline := time.Now().Add(50 * time.Millisecond)
	go func() { second <- d.send(t.Context(), p, &fn, q, deadline) }()
	time.Sleep(time.Until(deadline)) // the time itself is what is tested
	cancel()
	<-first
	if r := <-second; r.status != http.StatusGatewayTimeout || r.fault != minik8s.FaultPlatform || len(asked) > 0 {
		t.Errorf("%d, fault %s, %s; asked %d times more", r.status, r.fault, r.body, len(asked))
	}
}

// A name that is in use counts once, also when the store does not say so yet.
func TestANameInUseCountsOnce(t *testing.T) {
	reg, _ := anAPI(t)
	f := controlling(t, reg)
	key := loop.Key{Namespace: "default", Name: "id"}
	if !f.server.claim(key, "", func() {}, nil) {
		t.Fatal("it is not free")
	}
	err := f.accept(t.Context(), question{id: "id", function: loop.Key{Namespace: "default", Name: "f"}}, "", metav1.Now(), nil)
	if f.store.bound.used != (amount{}) || !apierrors.IsAlreadyExists(err) {
		t.Errorf("%+v is counted, %v", f.store.bound.used, err)
	}
}

// What is counted of a function does not come back with the end of a call that was under way when it was deleted.
func TestNothingIsCountedOfADeletedFunction(t *testing.T) {
	d := dispatching(t, nil)
	p := d.follow(functionOf("deleted"), "1", func(*pool) {})
	key := loop.Key{Namespace: "default", Name: "deleted"}
	d.drop(key)
	p.ended(key, result{status: 200, cold: true}, time.Second)
	if requests.DeletePartialMatch(map[string]string{"service_name": "deleted"}) > 0 {
		t.Error("there is a count of it")
	}
}

// Calls by triggers are kept for a while, or an event that is met again would be told again.
func TestCallsByTriggersAreKept(t *testing.T) {
	reg, c := anAPI(t)
	f := controlling(t, reg)
	fn := functionOf("f")
	fn.Spec = triggered("f").Spec
	fn.Spec.ResultSeconds = 1
	create(t, c, fn)
	for name, kept := range map[string]bool{plan.TriggerPrefix + "x": true, "call-x": false} {
		made := create(t, f.client, callOf(name, minik8s.CallRunning)).(*minik8s.FunctionCall)
		ended := callOf(name, minik8s.CallSucceeded).Status
		ended.EndTime = &metav1.Time{Time: clock.Now().Add(-time.Minute)}
		if err := writeStatus(t.Context(), c, made, ended); err != nil {
			t.Fatal(err)
		}
		for ; ; time.Sleep(time.Millisecond) {
			now, ok := f.calls.Get("default", name)
			if _, known := f.functions.Get("default", "f"); ok && known && now.Status.Ended() {
				break
			}
		}
		if err := f.advance(t.Context(), callKey(made)); err != nil {
			t.Fatal(err)
		}
		_, err := c.Get(t.Context(), client.KeyOf(made))
		if (err == nil) != kept {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A function that goes while it is looked after leaves nothing behind.
func TestAFunctionGoesMeanwhile(t *testing.T) {
	reg, c := anAPI(t)
	f := controlling(t, reg)
	fn := triggered("f")
	fn.Spec.Source, fn.Spec.Image, fn.Spec.MinInstances = "", "image", 1
	create(t, c, fn)
	key := keyOf(fn)
	for known := false; !known; time.Sleep(time.Millisecond) {
		_, known = f.functions.Get(key.Namespace, key.Name)
	}
	f.client = &atCreate{f.client, func() {
		if _, err := c.Delete(t.Context(), client.KeyOf(fn), nil); err != nil {
			t.Error(err)
		}
		for known := true; known; time.Sleep(time.Millisecond) {
			_, known = f.functions.Get(key.Namespace, key.Name)
		}
	}}
	if err := f.reconcile(t.Context(), key); err != nil {
		t.Fatal(err)
	}
	if f.dispatch.pool(key) != nil || len(f.present) > 0 || len(f.refs) > 0 {
		t.Errorf("it has left %v %v %v", f.dispatch.pool(key), f.present, f.refs)
	}
}

// atCreate does something before each object is made.
type atCreate struct {
	client.Interface
	first func()
}

func (a *atCreate) Create(ctx context.Context, obj api.Object, o client.WriteOptions) (api.Object, error) {
	a.first()
	return a.Interface.Create(ctx, obj, o)
}

// That a trigger is held back is not said when there is no such trigger.
func TestNothingIsSaidOfATriggerThatIsGone(t *testing.T) {
	reg, c := anAPI(t)
	f := controlling(t, reg)
	fn := create(t, c, triggered("f", minik8s.FunctionTrigger{Name: "there", Schedule: "@hourly"})).(*minik8s.Function)
	for name, stays := range map[string]bool{"there": true, "gone": false} {
		now := fn.DeepCopy()
		now.ResourceVersion = ""
		apimeta.SetStatusCondition(&now.Status.Conditions, metav1.Condition{Type: minik8s.FunctionTriggersHeldBack, Status: metav1.ConditionTrue, Reason: "TooManyChanges", Message: aboutTrigger(name) + "too many"})
		if err := f.say(t.Context(), now, addressed{}, nil, metav1.Condition{Type: minik8s.FunctionReady, Status: metav1.ConditionTrue, Reason: "Ready"}); err != nil {
			t.Fatal(err)
		}
		got, err := client.Get[*minik8s.Function](t.Context(), c, client.KeyOf(fn))
		if err != nil || (apimeta.FindStatusCondition(got.Status.Conditions, minik8s.FunctionTriggersHeldBack) != nil) != stays {
			t.Errorf("%s: %+v, %v", name, got.Status.Conditions, err)
		}
	}
}

// The end of a call whose name another one has by now is nobody's.
func TestTheEndOfAnotherCall(t *testing.T) {
	_, c := anAPI(t)
	first := create(t, c, callOf("call", "")).(*minik8s.FunctionCall)
	if _, err := c.Delete(t.Context(), client.KeyOf(first), nil); err != nil {
		t.Fatal(err)
	}
	create(t, c, callOf("call", ""))
	ctx, cancel := context.WithTimeoutCause(t.Context(), 20*time.Second, errors.New("it is tried again and again"))
	defer cancel()
	finish(ctx, c, first, result{status: 200}, nil)
	if ctx.Err() != nil {
		t.Error(context.Cause(ctx))
	}
}

// Pages of other sites call no function, by whichever port.
func TestPagesOfOtherSites(t *testing.T) {
	s := alone("a")
	r := httptest.NewRequest(http.MethodPost, "/", strings.NewReader("x"))
	r.Header.Set("Origin", "http://elsewhere.example")
	w := httptest.NewRecorder()
	s.callPlainly(w, r, "default", "f")
	if w.Code != http.StatusForbidden {
		t.Error(w.Code, w.Body)
	}
}

// Those who have begun to send an argument are bounded, too.
func TestArgumentsOnTheirWay(t *testing.T) {
	s := alone("a")
	s.reading.Store(mostReading)
	at := called(s, functionOf("f"))
	defer at.Close()
	resp, err := http.Post(at.URL, "", strings.NewReader("x"))
	if got := text(t, resp, err); !strings.HasPrefix(got, "429 ") {
		t.Error(got)
	}
	if n := s.reading.Load(); n != mostReading {
		t.Errorf("%d after a refusal", n-mostReading)
	}
}

// A function that was changed, or deleted and made anew, gets no call from before: calls wait until it is known as it was when they came.
func TestCallsWaitForTheirVersion(t *testing.T) {
	d := dispatching(t, nil)
	version := func(uid types.UID, generation int64) *minik8s.Function {
		fn := functionOf("f")
		fn.UID, fn.Generation = uid, generation
		return fn
	}
	q := question{function: loop.Key{Namespace: "default", Name: "f"}, uid: "new", generation: 2}
	known := make(chan bool, 1)
	go func() { known <- d.await(t.Context(), q) }()
	for _, fn := range []*minik8s.Function{version("old", 7), version("new", 1)} {
		d.follow(fn, "1", func(*pool) {})
		select {
		case <-known:
			t.Errorf("generation %d of %s has got the call", fn.Generation, fn.UID)
		case <-time.After(10 * time.Millisecond):
		}
	}
	d.follow(version("new", 3), "2", func(*pool) {})
	if !<-known {
		t.Error("it is not known")
	}
	d.stop()
	if d.await(t.Context(), question{function: q.function}) {
		t.Error("it is known on a master that has stopped")
	}
}

// A store that does not answer does not make a function unknown.
func TestAStoreThatDoesNotAnswer(t *testing.T) {
	reg, _ := anAPI(t)
	f := controlling(t, reg)
	q := question{function: loop.Key{Namespace: "default", Name: "f"}}
	if f.dispatch.stored(t.Context(), q) {
		t.Error("a function that is not there is known")
	}
	f.client = silent{f.client}
	if !f.dispatch.stored(t.Context(), q) {
		t.Error("what nobody could say is taken for a no")
	}
}

// silent is an API that cannot read.
type silent struct{ client.Interface }

func (silent) Get(context.Context, client.Key) (api.Object, error) {
	return nil, apierrors.NewServiceUnavailable("no leader")
}
