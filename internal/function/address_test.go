package function

import (
	"context"
	"log/slog"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"minik8s/internal/api/minik8s"
	"minik8s/internal/controller/loop"
)

// Whose call a request is, is said by its Host; who is not in the cluster is turned away before anything is looked up.
func TestDoor(t *testing.T) {
	d := NewDoor(NewServer(nil, Config{Log: slog.New(slog.DiscardHandler)}), DoorConfig{Domain: "cluster.local",
		Inside: func(_ context.Context, from netip.Addr) bool { return from == netip.MustParseAddr("10.244.0.5") },
		Home: func(_ context.Context, from netip.Addr) string {
			return map[string]string{"10.244.0.5": "other", "10.244.0.6": "third"}[from.String()]
		}})
	function := func(namespace, name, address string) *minik8s.Function {
		return &minik8s.Function{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Status: minik8s.FunctionStatus{Address: address}}
	}
	a, b, c := function("default", "hello", "10.7.0.3"), function("other", "hello", "10.7.0.4"), function("default", "alone", "10.7.0.5")
	for _, f := range []*minik8s.Function{a, b, c} {
		d.follow(nil, f)
	}
	moved := function("default", "alone", "10.7.0.6")
	d.follow(c, moved)
	for host, want := range map[string]loop.Key{
		"10.7.0.3": keyOf(a), "10.7.0.4:80": keyOf(b), "10.7.0.6": keyOf(c), "10.7.0.5": {}, "10.7.0.9": {}, "": {},
		"func-hello.default": keyOf(a), "func-hello.other.svc": keyOf(b), "FUNC-hello.other.svc.cluster.local.": keyOf(b), "func-hello.other.svc.elsewhere": {},
		"func-alone": keyOf(c), "func-hello": keyOf(b), // two namespaces have one
	} {
		if got, err := d.whose(t.Context(), host, netip.MustParseAddr("10.244.0.5")); got != want || (err == nil) != (want != loop.Key{}) {
			t.Errorf("%q: %v, %v", host, got, err)
		}
	}
	d.follow(moved, nil)
	if got, err := d.whose(t.Context(), "func-hello", netip.MustParseAddr("10.244.0.6")); err == nil {
		t.Errorf("from a namespace that has none: %v", got)
	}
	if _, err := d.whose(t.Context(), "10.7.0.6", netip.MustParseAddr("10.244.0.5")); err == nil {
		t.Error("a function that is gone still has its address")
	}
	for _, x := range []struct {
		from, method, host string
		code               int
		says               string
	}{
		{"192.0.2.7:1000", "POST", "10.7.0.3", 403, "for the cluster's pods and nodes"},
		{"10.244.0.5:1000", "GET", "10.7.0.3", 405, "called by POST"},
		{"10.244.0.5:1000", "POST", "10.7.0.9", 404, "no function has the address"},
		{"[::ffff:10.244.0.5]:1000", "POST", "10.7.0.9", 404, "no function has the address"},
		{"nonsense", "POST", "10.7.0.3", 403, "for the cluster's pods and nodes"},
	} {
		r := httptest.NewRequest(x.method, "http://"+x.host+"/any/path", nil)
		r.RemoteAddr = x.from
		w := httptest.NewRecorder()
		d.ServeHTTP(w, r)
		if w.Code != x.code || !strings.Contains(w.Body.String(), x.says) {
			t.Errorf("%s %s from %s: %d %s", x.method, x.host, x.from, w.Code, w.Body)
		}
	}
}

// A caller's trace is kept; what is none is replaced.
func TestTraces(t *testing.T) {
	const good = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	if got := traceFrom(good); got != good || traceID(got) != "0af7651916cd43dd8448eb211c80319c" {
		t.Errorf("%s became %s", good, got)
	}
	seen := map[string]bool{}
	for _, bad := range []string{"", "x", "00-00000000000000000000000000000000-b7ad6b7169203331-01", "00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01",
		good + "\r\nX: y", "ff-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"} {
		got := traceFrom(bad)
		if got == bad || len(traceID(got)) != 32 || seen[got] {
			t.Errorf("%q became %q", bad, got)
		}
		seen[got] = true
	}
}
