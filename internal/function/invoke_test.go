package function

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"minik8s/internal/api"
	"minik8s/internal/api/minik8s"
	"minik8s/internal/client"
	ct "minik8s/internal/controller/controllertest"
	"minik8s/internal/controller/loop"
)

// Calls of other parts of the master have the bounds that calls by HTTP have, and are told why they are not made.
func TestInvokeIsBounded(t *testing.T) {
	c := ct.New(t)
	s := NewServer(c.As(ControllerName), Config{})
	key := loop.Key{Namespace: "default", Name: "f"}
	s.under.put(key, amount{calls: mostUnderWay.calls})
	if r := s.Invoke(c.Context(), "default", "f", "id", "", nil, "", true); r.Status != http.StatusTooManyRequests || r.Fault != minik8s.FaultPlatform || r.Stopped {
		t.Errorf("one too many: %+v", r)
	}
	s.under.give(key, amount{calls: mostUnderWay.calls})
	s.under.put(key, amount{bytes: mostUnderWay.bytes - 1})
	if r := s.Invoke(c.Context(), "default", "f", "id", "", []byte("ab"), "", true); r.Status != http.StatusTooManyRequests {
		t.Errorf("a byte too many: %+v", r)
	}
	s.under.give(key, amount{bytes: mostUnderWay.bytes - 1})
	fn := ct.Create(c, &minik8s.Function{ObjectMeta: metav1.ObjectMeta{Name: "f"}, Spec: minik8s.FunctionSpec{Source: "x"}}).DeepCopy()
	fn.Status = minik8s.FunctionStatus{ObservedGeneration: fn.Generation, Conditions: []metav1.Condition{{Type: minik8s.FunctionReady, Status: metav1.ConditionFalse, Reason: "BuildFailed", Message: "it is no Python", LastTransitionTime: metav1.Now()}}}
	if _, err := c.Admin().Update(c.Context(), fn, client.WriteOptions{Subresource: api.StatusSubresource}); err != nil {
		t.Fatal(err)
	}
	if r := s.Invoke(c.Context(), "default", "f", "id", "", nil, "", true); r.Status != http.StatusServiceUnavailable || !strings.Contains(string(r.Body), "cannot be called: BuildFailed") {
		t.Errorf("one that cannot be called: %+v %s", r, r.Body)
	}
	if s.under.used != (amount{}) {
		t.Errorf("%+v is left", s.under.used)
	}
}

// A call by a workflow has a record as every call has.
func TestInvokeIsRecorded(t *testing.T) {
	c := ct.New(t)
	s := NewServer(c.As(ControllerName), Config{Log: slog.New(slog.DiscardHandler)})
	s.serve(dispatching(t, map[string]http.HandlerFunc{"f": func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set(headerOutcome, "function")
		w.WriteHeader(http.StatusInternalServerError)
		io.WriteString(w, "KeyError: 'x'") //nolint:errcheck // a test's
	}}))
	if r := s.Invoke(c.Context(), "default", "f", "run-1-a", "", nil, "", true); r.Fault != minik8s.FaultFunction {
		t.Fatalf("%+v", r)
	}
	all := s.last.list(loop.Key{Namespace: "default", Name: "f"})
	if len(all) != 1 || all[0].ID != "run-1-a" || all[0].Caller != callerWorkflow || all[0].Fault != minik8s.FaultFunction || all[0].Status != http.StatusInternalServerError {
		t.Errorf("%+v", all)
	}
}

// broken is a client that reads nothing.
type broken struct {
	client.Interface
	err error
}

func (b broken) Get(context.Context, client.Key) (api.Object, error) { return nil, b.err }

// A store that cannot be read for a while is no answer: the call is to be made again. What the caller may not do is one.
func TestInvokeWithoutAStore(t *testing.T) {
	for _, x := range []struct {
		err    error
		status int
		again  bool
	}{
		{context.DeadlineExceeded, http.StatusServiceUnavailable, true},
		{apierrors.NewServiceUnavailable("no leader"), http.StatusServiceUnavailable, true},
		{apierrors.NewTimeoutError("no leader", 1), http.StatusGatewayTimeout, true},
		{apierrors.NewForbidden(schema.GroupResource{}, "f", nil), http.StatusForbidden, false},
	} {
		s := NewServer(broken{err: x.err}, Config{})
		if r := s.Invoke(t.Context(), "default", "f", "id", "", nil, "", true); r.Stopped != x.again || r.Status != x.status || r.Fault != minik8s.FaultPlatform || s.under.used != (amount{}) {
			t.Errorf("%v: %+v %s, and %+v is left", x.err, r, r.Body, s.under.used)
		}
	}
}
