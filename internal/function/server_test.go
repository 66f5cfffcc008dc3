package function

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"minik8s/internal/api/minik8s"
	"minik8s/internal/controller/loop"
)

// functionOf is a function as tests call it.
func functionOf(name string) *minik8s.Function {
	return &minik8s.Function{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name},
		Spec: minik8s.FunctionSpec{Concurrency: 10, TargetConcurrency: 10, IdleSeconds: 60, TimeoutSeconds: 5}}
}

// running is an instance that takes calls at an address.
func running(name, address string) *instance {
	i := newInstance(name, "1")
	i.begin(address, "c", func() {})
	i.open = true
	return i
}

// dispatching has calls of functions answered by instances that are HTTP servers here.
func dispatching(t *testing.T, of map[string]http.HandlerFunc) *dispatcher {
	t.Helper()
	d := newDispatcher(nil, slog.New(slog.DiscardHandler), func(loop.Key) *appsv1.ReplicaSet { return nil }, func(loop.Key) bool { return true }, func(loop.Key) {})
	for name, h := range of {
		s := httptest.NewServer(h)
		t.Cleanup(s.Close)
		p := d.follow(functionOf(name), "1", func(*pool) {})
		p.mu.Lock()
		p.instances[types.UID(name)] = running(name, s.Listener.Addr().String())
		p.mu.Unlock()
	}
	return d
}

// called is one call by HTTP at a server, without the API.
func called(s *Server, fn *minik8s.Function) *httptest.Server {
	return httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := s.answer(w, r, fn, r.URL.Query(), ""); err != nil {
			failPlainly(w, err)
		}
	}))
}

func text(t *testing.T, resp *http.Response, err error) string {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close() //nolint:errcheck // it was only read
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("%d %s", resp.StatusCode, strings.TrimSpace(string(body)))
}

// Who sends a body slowly is turned away, and has held nothing but what he has sent.
func TestSlowBody(t *testing.T) {
	s := NewServer(nil, Config{Log: slog.New(slog.DiscardHandler), Leader: func(context.Context) (string, error) { return "", nil }})
	s.bodyTime = 200 * time.Millisecond
	at := called(s, functionOf("f"))
	defer at.Close()
	c, err := net.Dial("tcp", at.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close() //nolint:errcheck // the test has ended
	if _, err := c.Write([]byte("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\nsome")); err != nil {
		t.Fatal(err)
	}
	answer, err := io.ReadAll(c) // the connection is closed
	if err != nil || !strings.Contains(string(answer), "408 ") || !strings.Contains(string(answer), "the body has not come within") {
		t.Errorf("%q, %v", answer, err)
	}
	s.under.mu.Lock()
	defer s.under.mu.Unlock()
	if s.under.used != (amount{}) {
		t.Errorf("it still holds %+v", s.under.used)
	}
}

// A call goes to whoever leads, as long as nothing of it was sent: past a leader that is dead, past one that leads no more, and on from
// the function of a chain at which a master has stopped.
func TestCallsFindTheLeader(t *testing.T) {
	ok := func(answer string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, answer) } //nolint:errcheck // a test's
	}
	var looked atomic.Int32
	d := dispatching(t, map[string]http.HandlerFunc{"f": ok("here")})
	var s *Server
	s = NewServer(nil, Config{Log: slog.New(slog.DiscardHandler), Master: "a", Leader: func(context.Context) (string, error) {
		if looked.Add(1) == 3 {
			s.serve(d)
		}
		return "b", nil
	}, Other: func(context.Context, string) (string, http.RoundTripper, error) {
		return "http://b", roundTrip(func(*http.Request) (*http.Response, error) {
			if looked.Load() == 1 {
				return nil, errors.New("it is dead")
			}
			return &http.Response{StatusCode: 503, Header: http.Header{headerUnsent: {"true"}}, Body: http.NoBody}, nil
		}), nil
	}})
	at := called(s, functionOf("f"))
	defer at.Close()
	resp, err := http.Post(at.URL, "", strings.NewReader("x"))
	if got := text(t, resp, err); got != "200 here" {
		t.Errorf("%s, looked %d times", got, looked.Load())
	}

	// The chain goes on at another master, and what has run does not run again.
	var ran atomic.Int32
	first := dispatching(t, nil)
	one := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		ran.Add(1)
		first.stop()
		io.WriteString(w, "first") //nolint:errcheck // a test's
	}))
	defer one.Close()
	head := functionOf("head")
	head.Spec.Right = "tail"
	p := first.follow(head, "1", func(*pool) {})
	p.mu.Lock()
	p.instances["head"] = running("head", one.Listener.Addr().String())
	p.mu.Unlock()
	s = NewServer(nil, Config{Log: slog.New(slog.DiscardHandler), Master: "a", Leader: func(context.Context) (string, error) { return "b", nil },
		Other: func(context.Context, string) (string, http.RoundTripper, error) {
			return "http://b", roundTrip(func(r *http.Request) (*http.Response, error) {
				body, err := io.ReadAll(r.Body)
				return &http.Response{StatusCode: 200, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(r.URL.Path + " " + string(body)))}, err
			}), nil
		}})
	s.serve(first)
	at = called(s, head)
	defer at.Close()
	go func() { // it leads no more once the first function has run
		for !first.ended() {
			time.Sleep(time.Millisecond)
		}
		s.leave(first)
	}()
	resp, err = http.Post(at.URL, "", strings.NewReader("x"))
	if got := text(t, resp, err); got != "200 /apis/minik8s.io/v1/namespaces/default/functions/tail/call first" || ran.Load() != 1 {
		t.Errorf("%s; the first ran %d times", got, ran.Load())
	}
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// What an image answers that is no answer of a function is the function's fault; what cannot be sent is not tried again and again.
func TestAnswersOfImages(t *testing.T) {
	raw := func(head string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			c, _, err := w.(http.Hijacker).Hijack()
			if err != nil {
				panic(err)
			}
			defer c.Close()                                                  //nolint:errcheck // a test's
			io.Copy(io.Discard, io.LimitReader(r.Body, 1))                   //nolint:errcheck // a test's
			fmt.Fprintf(c, "HTTP/1.1 %s\r\nContent-Length: 0\r\n\r\n", head) //nolint:errcheck // a test's
		}
	}
	d := dispatching(t, map[string]http.HandlerFunc{"moved": raw("302 Found\r\nLocation: /x"), "zero": raw("000 Nothing"), "far": raw("799 Far"), "empty": raw("204 No Content")})
	for name, want := range map[string]int{"moved": 502, "zero": 502, "far": 502, "empty": 204} {
		r := d.call(t.Context(), question{id: "x", function: loop.Key{Namespace: "default", Name: name}})
		if r.status != want || (r.fault == minik8s.FaultFunction) != (want == 502) {
			t.Errorf("%s: %d %q %s", name, r.status, r.fault, r.body)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
	defer cancel()
	if r := d.call(ctx, question{id: "x", function: loop.Key{Namespace: "default", Name: "empty"}, contentType: "a\x01b"}); r.status != 500 || ctx.Err() != nil {
		t.Errorf("%d %s", r.status, r.body)
	}
}

// What is remembered of calls has a bound: of each function, in number and bytes, and in functions. Those go first that were called longest ago.
func TestRecords(t *testing.T) {
	s := newRecords()
	add := func(function, id string, size int) {
		s.add(&record{function: loop.Key{Namespace: "default", Name: function}, FunctionRecord: minik8s.FunctionRecord{ID: id, Time: metav1.Now()}, result: result{body: make([]byte, size)}})
	}
	for i := range 2 * mostRecords {
		add("often", fmt.Sprint("o", i), 1)
	}
	for i := range 10 {
		add("large", fmt.Sprint("l", i), maxRecord)
	}
	add("large", "more", maxRecord+1)
	if n := len(s.list(loop.Key{Namespace: "default", Name: "often"})); n != mostRecords || s.get("default", "o0") != nil || s.get("default", fmt.Sprint("o", 2*mostRecords-1)) == nil {
		t.Errorf("%d calls of one function", n)
	}
	if n := len(s.list(loop.Key{Namespace: "default", Name: "large"})); n != mostRecordBytes/maxRecord+1 || !s.get("default", "more").Cut {
		t.Errorf("%d large results", n)
	}
	for i := range mostRecorded {
		add(fmt.Sprint("f", i), fmt.Sprint("x", i), 1)
	}
	if len(s.of) != mostRecorded || s.get("default", "more") != nil || s.get("default", "x0") == nil {
		t.Errorf("%d functions", len(s.of))
	}
	for key := range s.of {
		s.forget(key)
	}
	if len(s.byID) != 0 {
		t.Errorf("%d calls of functions that are gone", len(s.byID))
	}
}

// Who opens connections and says nothing keeps nobody from the port: his oldest ones are closed.
func TestQuietConnections(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	go serveQuietly(ctx, l, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "served") }), 10) //nolint:errcheck // it ends with the test
	var open []net.Conn
	for range 15 {
		c, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close() //nolint:errcheck // the test has ended
		open = append(open, c)
	}
	resp, err := http.Post("http://"+l.Addr().String(), "", strings.NewReader("x"))
	if got := text(t, resp, err); got != "200 served" {
		t.Error(got)
	}
	closed := 0
	for i, c := range open {
		c.SetReadDeadline(time.Now().Add(5 * time.Second)) //nolint:errcheck // it never fails
		if i >= 6 {
			c.SetReadDeadline(time.Now()) //nolint:errcheck // as above
		}
		if _, err := c.Read(make([]byte, 1)); errors.Is(err, io.EOF) {
			closed++
		}
	}
	if closed < 5 || closed > 6 {
		t.Errorf("%d of 15 connections were closed, where 10 may be quiet", closed)
	}
}
