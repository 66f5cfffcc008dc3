package plan

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"minik8s/internal/api/defaults"
	"minik8s/internal/api/minik8s"
)

func TestDerived(t *testing.T) {
	seen := map[string]string{}
	for _, name := range []string{"hello", "addFive", "add-five", "add_five", "addfive", "AddFive", "is_hello", "is.hello", "is-hello", "a--b", "A", "a", "9", "f-9", "printEquals",
		"add-five--" + strings.Repeat("a", 6), "X9_y.Z", strings.Repeat("A", 50), strings.Repeat("A", 49) + "B", strings.Repeat("a_", 24) + "b"} {
		got := Derived(name)
		if other, ok := seen[got]; ok {
			t.Errorf("%s and %s are both %s", name, other, got)
		}
		seen[got] = name
		if errs := validation.IsDNS1035Label(got); len(errs) > 0 {
			t.Errorf("%s: %q: %v", name, got, errs)
		}
	}
	if got := Derived("hello"); got != "hello" {
		t.Errorf("hello is %s", got)
	}
	if got := Derived("addFive"); !strings.HasPrefix(got, "add-five--") {
		t.Errorf("addFive is %s", got)
	}
}

func TestSet(t *testing.T) {
	f := &minik8s.Function{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "addFive"}, Spec: minik8s.FunctionSpec{Source: "x"}}
	defaults.Function(f)
	one := Set(f, "r/i@sha256:1", metav1.OwnerReference{})
	if *one.Spec.Replicas != 0 || one.Spec.Template.Labels[VersionLabel] != one.Spec.Selector.MatchLabels[VersionLabel] {
		t.Errorf("%+v", one)
	}
	r := one.Spec.Template.Spec.Containers[0].Resources
	if r.Limits.Memory().String() != "256Mi" || r.Requests.Memory().String() != "16Mi" || f.Spec.Resources.Limits != nil {
		t.Errorf("resources of an instance %+v, of the function %+v", r, f.Spec.Resources)
	}
	for given, want := range map[string]string{"8Mi": "8Mi 8Mi", "1Gi": "1Gi 16Mi"} {
		less := *f
		less.Spec.Resources.Limits = corev1.ResourceList{corev1.ResourceMemory: resource.MustParse(given)}
		r := Set(&less, "r/i@sha256:1", metav1.OwnerReference{}).Spec.Template.Spec.Containers[0].Resources
		if got := r.Limits.Memory().String() + " " + r.Requests.Memory().String(); got != want {
			t.Errorf("with a limit of %s: %s", given, got)
		}
	}
	long := *f
	long.Spec.TimeoutSeconds = 3600
	if grace := *Set(&long, "r/i@sha256:1", metav1.OwnerReference{}).Spec.Template.Spec.TerminationGracePeriodSeconds; grace != 3600 {
		t.Errorf("calls may take 3600 s, and an instance has %d s to end", grace)
	}
	f.Spec.MaxInstances = 3 // is about how many, not about what
	if other := Set(f, "r/i@sha256:1", metav1.OwnerReference{}); other.Name != one.Name {
		t.Error("another number made other instances")
	}
	for name, change := range map[string]func(){"image": nil, "version": func() { f.Spec.Version = minik8s.FunctionV1 }, "timeout": func() { f.Spec.TimeoutSeconds = 5 }} {
		image := "r/i@sha256:1"
		if change == nil {
			image = "r/i@sha256:2"
		} else {
			change()
		}
		if other := Set(f, image, metav1.OwnerReference{}); other.Name == one.Name {
			t.Errorf("another %s made no other instances", name)
		}
	}
}

func TestScaler(t *testing.T) {
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	now := start
	idle := start
	s := &Scaler{Target: 7, Stable: time.Minute}
	have := int32(0)
	tick := func(calls int) int32 {
		now = now.Add(Tick)
		if calls > 0 {
			idle = now
		}
		s.Observe(now, float64(calls))
		have = s.Desired(now, calls, have, have, idle)
		return have
	}
	if got := s.Desired(now, 1, 0, 0, idle); got != 1 {
		t.Fatalf("the first call asks for %d", got)
	}
	have = 1
	if got := s.Desired(now, 200, 1, 1, now); got != 29 {
		t.Errorf("200 at once ask for %d", got)
	}
	have = 29
	for range 20 {
		if got := tick(200); got != 29 {
			t.Fatalf("200 for some time ask for %d", got)
		}
	}
	went := 0
	for i := range 60 {
		before := have
		if got := tick(0); got < before/2 {
			t.Fatalf("from %d to %d in one step", before, got)
		}
		if have == 0 {
			went = i + 1
			break
		}
	}
	if at := time.Duration(went) * Tick; at < time.Minute || at > 90*time.Second {
		t.Errorf("the last went %v after the last call", at)
	}
	// A steady trickle keeps one.
	s, have = &Scaler{Target: 7, Stable: time.Minute}, 1
	for i := range 200 {
		calls := 0
		if i%10 == 0 {
			calls = 1
		}
		if got := tick(calls); got != 1 {
			t.Fatalf("a call every 20 s has %d instances", got)
		}
	}
}

// However long the window, the samples are few; and the average is that of all the calls.
func TestScalerOfAMonth(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	s := &Scaler{Target: 10, Stable: 30 * 24 * time.Hour}
	for i := range 200_000 {
		now = now.Add(Tick)
		calls := 0.0
		if i%2 == 0 {
			calls = 60
		}
		s.Observe(now, calls)
	}
	if n := len(s.samples); n > 2*maxSamples {
		t.Errorf("%d samples", n)
	}
	if got := s.average(now.Add(-s.Stable)); got < 29.9 || got > 30.1 {
		t.Errorf("of 0 and 60 in turns the average is %v", got)
	}
}
