package ctl

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"minik8s/internal/api/minik8s"
)

// A function of which the calls fail that somebody waits for is not well, though none of them is kept as an object.
func TestWhyFunction(t *testing.T) {
	fn := &minik8s.Function{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "add"}, Status: minik8s.FunctionStatus{
		Conditions: []metav1.Condition{{Type: minik8s.FunctionReady, Status: metav1.ConditionTrue, Reason: "Ready"}}}}
	at := func(before time.Duration) metav1.Time { return metav1.NewTime(testTime.Add(-before)) }
	good := minik8s.FunctionRecord{ID: "one", Time: at(time.Minute), Status: 200}
	bad := minik8s.FunctionRecord{ID: "two", Time: at(2 * time.Minute), Status: 500, Fault: minik8s.FaultFunction, Result: "Traceback:\nKeyError: 'x'"}
	older := minik8s.FunctionRecord{ID: "three", Time: at(time.Hour), Status: 500, Fault: minik8s.FaultFunction, Result: "older"}
	for _, x := range []struct {
		name      string
		records   []minik8s.FunctionRecord
		want, not []string
	}{
		{"none", nil, []string{"can be called"}, []string{"failed"}},
		{"good ones", []minik8s.FunctionRecord{good}, []string{"can be called"}, []string{"failed"}},
		{"some fail", []minik8s.FunctionRecord{good, bad, older}, []string{"can be called", "2 of the last 3 calls", "the last is two, 2m ago, by the fault of the function", "KeyError: 'x'", "func calls add"}, []string{"every call", "older"}},
		{"all fail", []minik8s.FunctionRecord{bad}, []string{"but every call of late has failed", "1 of the last 1 calls"}, nil},
	} {
		f := newFake(t, fn)
		f.answers("GET /apis/minik8s.io/v1/namespaces/default/functions/add/calls", func(w http.ResponseWriter, _ *http.Request) {
			json.NewEncoder(w).Encode(x.records) //nolint:errcheck // a test's
		})
		r := f.ctl("", "why", "func", "add")
		for _, want := range x.want {
			if !strings.Contains(r.out, want) {
				t.Errorf("%s: without %q: %s\n%s", x.name, want, r.text, r.out)
			}
		}
		for _, not := range x.not {
			if strings.Contains(r.out, not) {
				t.Errorf("%s: with %q:\n%s", x.name, not, r.out)
			}
		}
	}
}
