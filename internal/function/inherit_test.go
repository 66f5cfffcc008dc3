package function

import (
	"context"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"minik8s/internal/aggregation"
	"minik8s/internal/api"
	"minik8s/internal/api/minik8s"
	"minik8s/internal/client"
)

// otherMaster has f's master ask another one, which answers as the API server would: with the object as it is in the store.
func otherMaster(t *testing.T, f *Controller, name string) (s *Server, gone *atomic.Bool) {
	t.Helper()
	s, gone = NewServer(f.server.client, Config{Master: name, Log: f.log}), new(atomic.Bool)
	f.server.cfg.Other = func(_ context.Context, asked string) (string, http.RoundTripper, error) {
		if asked != name || gone.Load() {
			return "", nil, ErrNoMaster
		}
		return "https://" + name, roundTrip(func(r *http.Request) (*http.Response, error) {
			parts := strings.Split(r.URL.Path, "/") // /apis/minik8s.io/v1/namespaces/NS/functioncalls/NAME/result
			w := httptest.NewRecorder()
			c, err := client.Get[*minik8s.FunctionCall](r.Context(), s.client, client.Key{Kind: api.FunctionCalls, Namespace: parts[5], Name: parts[7]})
			if err != nil {
				return nil, err
			}
			err = s.result(w, &aggregation.Connected{Request: r, Object: c, Namespace: c.Namespace, Name: c.Name, Query: url.Values(r.URL.Query())})
			return w.Result(), err
		}), nil
	}
	return s, gone
}

// begunBy makes a call that a master has begun, as the store says, and shows it to f.
func begunBy(t *testing.T, f *Controller, name, master string) *minik8s.FunctionCall {
	t.Helper()
	c := callOf(name, minik8s.CallRunning)
	c.Status.Master = master
	return create(t, f.client, c).(*minik8s.FunctionCall)
}

func (f *Controller) stored(t *testing.T, c *minik8s.FunctionCall) *minik8s.FunctionCall {
	t.Helper()
	now, err := client.Get[*minik8s.FunctionCall](t.Context(), f.client, client.KeyOf(c))
	if err != nil {
		t.Fatal(err)
	}
	return now
}

func (f *Controller) waitFor(t *testing.T, c *minik8s.FunctionCall, what string, is func(*minik8s.FunctionCall) bool) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); !is(f.stored(t, c)); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%s: %+v", what, f.stored(t, c).Status)
		}
	}
}

// A call goes on with the master that has begun it, also when that leads no more; who leads takes it over when that master is gone, or has it no more.
func TestCallsOfADeposedMaster(t *testing.T) {
	reg, admin := anAPI(t)
	for _, x := range []struct {
		name  string
		never bool
		then  func(b *Server, gone *atomic.Bool, c *minik8s.FunctionCall) // after f has asked
		want  string
	}{
		{"ends", false, func(b *Server, _ *atomic.Bool, c *minik8s.FunctionCall) {
			finish(t.Context(), b.client, c, result{status: 200, body: []byte("from b")}, c.Status.StartTime)
			b.unclaim(callKey(c))
		}, "from b"},
		{"ends, and is not to be called again", true, func(b *Server, _ *atomic.Bool, c *minik8s.FunctionCall) {
			finish(t.Context(), b.client, c, result{status: 200, body: []byte("from b")}, c.Status.StartTime)
			b.unclaim(callKey(c))
		}, "from b"},
		{"gives up", false, func(b *Server, _ *atomic.Bool, c *minik8s.FunctionCall) { b.unclaim(callKey(c)) }, "function f"},
		{"dies", false, func(_ *Server, gone *atomic.Bool, _ *minik8s.FunctionCall) { gone.Store(true) }, "function f"},
		{"dies, and is not to be called again", true, func(_ *Server, gone *atomic.Bool, _ *minik8s.FunctionCall) { gone.Store(true) }, "not to be called again"},
	} {
		t.Run(x.name, func(t *testing.T) {
			f := controlling(t, reg)
			b, gone := otherMaster(t, f, "b")
			if x.never {
				fn := triggered("f")
				fn.Spec.Retry = minik8s.RetryNever
				create(t, admin, fn)
				defer func() { // the next case has the same store
					if _, err := admin.Delete(context.WithoutCancel(t.Context()), client.KeyOf(fn), nil); err != nil {
						t.Error(err)
					}
				}()
				for known := false; !known; time.Sleep(time.Millisecond) {
					_, known = f.functions.Get("default", "f")
				}
			}
			c := begunBy(t, f, "call-"+strings.Fields(strings.ReplaceAll(x.name, ",", ""))[0]+map[bool]string{true: "-never"}[x.never], "b")
			if !b.claim(callKey(c), c.UID, func() {}, nil) {
				t.Fatal("it is claimed already")
			}
			if err := f.begin(t.Context(), callKey(c), c); err != nil {
				t.Fatal(err)
			}
			// It is asked for twice, and stays b's.
			for i := 0; i < 300; i++ {
				if now := f.stored(t, c); now.Status.Master != "b" || now.Status.State != minik8s.CallRunning {
					t.Fatalf("it was taken from a master that has it: %+v", now.Status)
				}
				time.Sleep(time.Millisecond)
			}
			x.then(b, gone, c)
			f.waitFor(t, c, "its end", func(c *minik8s.FunctionCall) bool { return c.Status.Ended() })
			if now := f.stored(t, c); !strings.Contains(string(now.Status.Result), x.want) || now.Status.Master != "" {
				t.Errorf("%+v: %q", now.Status, now.Status.Result)
			}
			for f.server.has(callKey(c), c.UID) { // and nobody has it any more
				time.Sleep(time.Millisecond)
			}
		})
	}
}

// A master that can be asked by nobody delays the calls of others once, not each.
func TestALostMasterIsAskedOnce(t *testing.T) {
	reg, _ := anAPI(t)
	f := controlling(t, reg)
	asked := new(atomic.Int32)
	f.server.cfg.Other = func(context.Context, string) (string, http.RoundTripper, error) {
		asked.Add(1)
		return "", nil, ErrNoMaster
	}
	c := callOf("x", minik8s.CallRunning)
	c.Status.Master = "b"
	for range 3 {
		if f.server.elsewhere(t.Context(), c) {
			t.Fatal("a master that is not there has a call")
		}
	}
	if asked.Load() != 1 {
		t.Errorf("asked %d times", asked.Load())
	}
	c.Status.Master = "a" // this process's predecessor
	if f.server.elsewhere(t.Context(), c) || asked.Load() != 1 {
		t.Error("it asks itself")
	}
}

// What says nothing of a master does not make it lost: a store that does not answer here, or a refusal there.
func TestAMasterThatDoesNotSay(t *testing.T) {
	reg, _ := anAPI(t)
	f := controlling(t, reg)
	c := callOf("x", minik8s.CallRunning)
	c.Status.Master = "b"
	for _, x := range []struct {
		name      string
		status    int // 0: it is not asked
		found     error
		elsewhere bool
	}{
		{"the store does not say where it is", 0, context.DeadlineExceeded, true},
		{"it has too much to do", http.StatusTooManyRequests, nil, true},
		{"it does not let this one in", http.StatusForbidden, nil, true},
		{"it knows no such call", http.StatusNotFound, nil, false},
		{"its store does not answer", http.StatusServiceUnavailable, nil, false},
	} {
		f.server.cfg.Other = func(context.Context, string) (string, http.RoundTripper, error) {
			return "https://b", roundTrip(func(*http.Request) (*http.Response, error) {
				return &http.Response{StatusCode: x.status, Header: http.Header{}, Body: http.NoBody}, nil
			}), x.found
		}
		clear(f.server.lost)
		if got := f.server.elsewhere(t.Context(), c); got != x.elsewhere {
			t.Errorf("%s: %v", x.name, got)
		}
	}
}
