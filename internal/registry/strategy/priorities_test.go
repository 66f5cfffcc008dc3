package strategy_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"minik8s/internal/api"
	"minik8s/internal/client"
	"minik8s/internal/client/local"
	"minik8s/internal/registry"
	"minik8s/internal/registry/registrytest"
)

// TestPriority: a pod gets the number of its class, and cannot say another.
func TestPriority(t *testing.T) {
	admin := local.New(registrytest.New(t), registry.System)
	never := corev1.PreemptNever
	if _, err := admin.Create(t.Context(), &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: "night"}, Value: -5, PreemptionPolicy: &never}, client.WriteOptions{}); err != nil {
		t.Fatal(err)
	}
	for i, x := range []struct {
		name     string
		class    string
		priority *int32
		policy   *corev1.PreemptionPolicy
		want     int32
		refused  string
	}{
		{name: "nothing", want: 0},
		{name: "what it would get, as in a pod read back", priority: new(int32(0)), policy: new(corev1.PreemptLowerPriority), want: 0},
		{name: "a number", priority: new(int32(100000)),
			refused: "the integer value of priority (100000) must not be provided in pod spec; priority admission controller computed 0 from the given PriorityClass name"},
		{name: "a policy", policy: &never, refused: "the string value of PreemptionPolicy (Never) must not be provided"},
		{name: "of the node", class: "system-node-critical", want: 2_000_001_000},
		{name: "of the cluster", class: "system-cluster-critical", want: 2_000_000_000},
		{name: "a class made a moment ago", class: "night", want: -5},
		{name: "its number, repeated", class: "night", priority: new(int32(-5)), want: -5},
		{name: "another number", class: "night", priority: new(int32(0)),
			refused: "the integer value of priority (0) must not be provided in pod spec; priority admission controller computed -5 from the given PriorityClass name"},
		{name: "another policy", class: "night", policy: new(corev1.PreemptLowerPriority), refused: "the string value of PreemptionPolicy (PreemptLowerPriority) must not be provided"},
		{name: "no such class", class: "day", refused: "no PriorityClass with name day was found"},
	} {
		t.Run(x.name, func(t *testing.T) {
			obj, err := admin.Create(t.Context(), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "p" + string(rune('a'+i))},
				Spec: corev1.PodSpec{PriorityClassName: x.class, Priority: x.priority, PreemptionPolicy: x.policy,
					Containers: []corev1.Container{{Name: "c", Image: "x"}}}}, client.WriteOptions{})
			if x.refused != "" {
				if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), x.refused) {
					t.Fatalf("got %v", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			pod := obj.(*corev1.Pod)
			if pod.Spec.Priority == nil || *pod.Spec.Priority != x.want || pod.Spec.PreemptionPolicy == nil {
				t.Fatalf("%v, %v", pod.Spec.Priority, pod.Spec.PreemptionPolicy)
			}
			// A manifest that is put again does not know the number.
			again := pod.DeepCopy()
			again.Spec.Priority, again.Spec.PreemptionPolicy, again.Labels = nil, nil, map[string]string{"a": "b"}
			if obj, err = admin.Update(t.Context(), again, client.WriteOptions{}); err != nil {
				t.Fatal(err)
			}
			if p := obj.(*corev1.Pod).Spec.Priority; p == nil || *p != x.want {
				t.Errorf("after an update: %v", p)
			}
		})
	}
}

func TestPriorityClasses(t *testing.T) {
	reg := registrytest.New(t)
	admin := local.New(reg, registry.System)
	for range 2 { // a second start finds them
		if err := reg.Ensure(t.Context(), api.SystemObjects()...); err != nil {
			t.Fatal(err)
		}
	}
	classes, _, err := client.All[*schedulingv1.PriorityClass](t.Context(), admin, api.PriorityClasses, client.ListOptions{})
	if err != nil || len(classes) != 2 {
		t.Fatalf("%v, %v", classes, err)
	}
	for name, class := range map[string]*schedulingv1.PriorityClass{
		"system-mine": {Value: 1},
		"high":        {Value: 1_000_000_001},
	} {
		class.Name = name
		if _, err := admin.Create(t.Context(), class, client.WriteOptions{}); !apierrors.IsInvalid(err) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for what, change := range map[string]func(*schedulingv1.PriorityClass){
		"another value":         func(pc *schedulingv1.PriorityClass) { pc.Value = 5 },
		"the system as default": func(pc *schedulingv1.PriorityClass) { pc.GlobalDefault = true },
	} {
		other := classes[0].DeepCopy()
		change(other)
		if _, err := admin.Update(t.Context(), other, client.WriteOptions{}); !apierrors.IsInvalid(err) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// TestDefaultClass: pods that name no class get the default one, of which there is one at most.
func TestDefaultClass(t *testing.T) {
	admin := local.New(registrytest.New(t), registry.System)
	class := func(name string, value int32, isDefault bool) (*schedulingv1.PriorityClass, error) {
		obj, err := admin.Create(t.Context(), &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: name},
			Value: value, GlobalDefault: isDefault}, client.WriteOptions{})
		pc, _ := obj.(*schedulingv1.PriorityClass)
		return pc, err
	}
	mark := func(pc *schedulingv1.PriorityClass, isDefault bool) (*schedulingv1.PriorityClass, error) {
		pc = pc.DeepCopy()
		pc.GlobalDefault = isDefault
		obj, err := admin.Update(t.Context(), pc, client.WriteOptions{})
		if err != nil {
			return pc, err
		}
		return obj.(*schedulingv1.PriorityClass), nil
	}
	ordinary, err := class("ordinary", 50, true)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := class("second", 60, true); !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "PriorityClass ordinary is already marked as default. Only one default can exist") {
		t.Errorf("a second default: %v", err)
	}
	other, err := class("other", 70, false)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := mark(other, true); !apierrors.IsForbidden(err) {
		t.Errorf("another class becomes a default too: %v", err)
	}
	ordinary.Description = "as it was, with a text"
	if ordinary, err = mark(ordinary, true); err != nil {
		t.Fatal(err)
	}

	pod := func(priority *int32) (*corev1.Pod, error) {
		// Pods go by the classes as they are known, and a get waits until all are.
		if _, err := client.Get[*schedulingv1.PriorityClass](t.Context(), admin, client.KeyOf(other)); err != nil {
			t.Fatal(err)
		}
		obj, err := admin.Create(t.Context(), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", GenerateName: "p-"},
			Spec: corev1.PodSpec{Priority: priority, Containers: []corev1.Container{{Name: "c", Image: "x"}}}}, client.WriteOptions{})
		made, _ := obj.(*corev1.Pod)
		return made, err
	}
	if p, err := pod(nil); err != nil || p.Spec.PriorityClassName != "ordinary" || *p.Spec.Priority != 50 {
		t.Errorf("%+v, %v", p, err)
	}
	if _, err := pod(new(int32(0))); !apierrors.IsForbidden(err) {
		t.Errorf("0, which it would not get: %v", err)
	}
	if _, err := mark(ordinary, false); err != nil {
		t.Fatal(err)
	}
	if _, err := mark(other, true); err != nil {
		t.Errorf("a new default, when there is none: %v", err)
	}
	if p, err := pod(nil); err != nil || *p.Spec.Priority != 70 {
		t.Errorf("%+v, %v", p, err)
	}
}
