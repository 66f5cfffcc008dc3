package roles_test

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"minik8s/internal/api"
	"minik8s/internal/api/minik8s"
	"minik8s/internal/client"
)

// Events call functions: none is lost and none is doubled, also when the daemon is killed.
func TestFunctionTriggers(t *testing.T) {
	c := newFunctions(t, 18089)
	ctx := t.Context()
	calls := func(trigger string) (all []*minik8s.FunctionCall) {
		t.Helper()
		list, _, err := client.All[*minik8s.FunctionCall](ctx, c.api, api.FunctionCalls, client.ListOptions{Namespace: "default"})
		if err != nil {
			t.Fatal(err)
		}
		for _, x := range list {
			if strings.HasPrefix(x.Spec.Caller, "trigger "+trigger+", ") {
				all = append(all, x)
			}
		}
		return all
	}
	create := func(objs ...api.Object) {
		t.Helper()
		for _, o := range objs {
			if _, err := c.api.Create(ctx, o, client.WriteOptions{}); err != nil {
				t.Fatal(err)
			}
		}
	}
	meta := func(name string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: "default", Name: name, Labels: map[string]string{"watched": "yes"}}
	}
	create(&corev1.ConfigMap{ObjectMeta: meta("before")})
	selector := &metav1.LabelSelector{MatchLabels: map[string]string{"watched": "yes"}}
	c.add("onChange", "def main(e):\n    return e['type'] + ' ' + e['object']['kind'] + ' ' + e['object']['metadata']['name'] + ' ' + str(e['object'].get('data'))\n", func(s *minik8s.FunctionSpec) {
		s.Triggers = []minik8s.FunctionTrigger{
			{Name: "maps", Object: &minik8s.FunctionObjectTrigger{APIVersion: "v1", Kind: "ConfigMap", Selector: selector}},
			{Name: "secrets", Object: &minik8s.FunctionObjectTrigger{APIVersion: "v1", Kind: "Secret", On: []string{"Created"}}},
			{Name: "pods", Object: &minik8s.FunctionObjectTrigger{APIVersion: "v1", Kind: "Pod"}},
		}
	})
	c.add("onTime", "def run(arg):\n    return 'at ' + arg\n", func(s *minik8s.FunctionSpec) {
		s.Triggers = []minik8s.FunctionTrigger{{Name: "often", Schedule: "@every 2s", Body: "times"}}
	})
	state := func(name string) int {
		f, err := client.Get[*minik8s.Function](ctx, c.api, client.Key{Kind: api.Functions, Namespace: "default", Name: name})
		if err != nil {
			t.Fatal(err)
		}
		return len(f.Status.Triggers)
	}
	c.eventually("triggers that look", func() bool { return state("onChange") == 3 && state("onTime") == 1 })

	create(&corev1.ConfigMap{ObjectMeta: meta("one"), Data: map[string]string{"a": "1"}}, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "other"}},
		&corev1.Secret{ObjectMeta: meta("hidden"), StringData: map[string]string{"a": "swordfish"}})
	if _, err := c.api.Update(ctx, &corev1.ConfigMap{ObjectMeta: meta("one"), Data: map[string]string{"a": "2"}}, client.WriteOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := c.api.Delete(ctx, client.Key{Kind: api.ConfigMaps, Namespace: "default", Name: "one"}, nil); err != nil {
		t.Fatal(err)
	}
	results := func(trigger string) map[string]int {
		got := map[string]int{}
		for _, x := range calls(trigger) {
			got[string(x.Status.Result)]++
		}
		return got
	}
	want := map[string]int{`"Created ConfigMap one {'a': '1'}"`: 1, `"Updated ConfigMap one {'a': '2'}"`: 1, `"Deleted ConfigMap one {'a': '2'}"`: 1}
	c.eventually("a call for each change", func() bool { return fmt.Sprint(results("maps")) == fmt.Sprint(want) })
	c.eventually("a call for a Secret", func() bool {
		return fmt.Sprint(results("secrets")) == fmt.Sprint(map[string]int{`"Created Secret hidden None"`: 1})
	})
	for _, x := range calls("secrets") {
		if strings.Contains(string(x.Spec.Body), "swordfish") || strings.Contains(string(x.Spec.Body), "c3dvcmRmaXNo") {
			t.Errorf("a secret is in a call: %s", x.Spec.Body)
		}
	}
	if n := len(calls("pods")); n > 12 { // those of the other function; its own would have no end
		t.Errorf("%d calls for pods", n)
	}
	c.eventually("two times", func() bool { return len(calls("often")) >= 2 })

	// The daemon is killed with changes that have no call yet.
	for i := range 20 {
		create(&corev1.ConfigMap{ObjectMeta: meta(fmt.Sprintf("burst-%d", i))})
	}
	c.kill()
	c.api = c.up()
	c.eventually("a call for each of the burst", func() bool {
		n := 0
		for result, count := range results("maps") {
			if strings.HasPrefix(result, `"Created ConfigMap burst-`) {
				n += count
			}
		}
		return n == 20
	})
	n := len(calls("often"))
	c.eventually("times after that", func() bool { return len(calls("often")) > n })
	events := map[string]bool{}
	for _, x := range append(calls("maps"), calls("often")...) {
		if events[x.Spec.Caller] {
			t.Errorf("two calls for one event: %s", x.Spec.Caller)
		}
		events[x.Spec.Caller] = true
	}

	// Objects that change faster than a trigger calls hold it back, which the function says; and no change is left out.
	for i := range 130 {
		create(&corev1.ConfigMap{ObjectMeta: meta(fmt.Sprintf("rush-%d", i))})
	}
	c.eventually("a function that says that it is held back", func() bool {
		f, err := client.Get[*minik8s.Function](ctx, c.api, client.Key{Kind: api.Functions, Namespace: "default", Name: "onChange"})
		if err != nil {
			return false
		}
		held := apimeta.FindStatusCondition(f.Status.Conditions, minik8s.FunctionTriggersHeldBack)
		return held != nil && held.Status == metav1.ConditionTrue && strings.Contains(held.Message, "trigger maps: objects of kind ConfigMap")
	})
	c.eventually("a call for each of the rush", func() bool {
		n := 0
		for result, count := range results("maps") {
			if strings.HasPrefix(result, `"Created ConfigMap rush-`) {
				n += count
			}
		}
		return n == 130
	})

	// What has no trigger any more is called no more.
	f, err := client.Get[*minik8s.Function](ctx, c.api, client.Key{Kind: api.Functions, Namespace: "default", Name: "onChange"})
	if err != nil {
		t.Fatal(err)
	}
	bare := f.DeepCopy()
	bare.Spec.Triggers = nil
	if _, err := c.api.Update(ctx, bare, client.WriteOptions{}); apierrors.IsConflict(err) {
		bare.ResourceVersion = ""
		_, err = c.api.Update(ctx, bare, client.WriteOptions{})
		if err != nil {
			t.Fatal(err)
		}
	} else if err != nil {
		t.Fatal(err)
	}
	n = len(calls("often"))
	c.eventually("some time", func() bool { return len(calls("often")) > n })
	n = len(calls("maps"))
	create(&corev1.ConfigMap{ObjectMeta: meta("late")})
	m := len(calls("often"))
	c.eventually("some time", func() bool { return len(calls("often")) > m })
	if got := len(calls("maps")); got != n {
		t.Errorf("%d calls for changes that nobody asks for any more", got-n)
	}

	for _, x := range []struct {
		trigger minik8s.FunctionTrigger
		says    string
	}{
		{minik8s.FunctionTrigger{Name: "x"}, "a schedule or an object"},
		{minik8s.FunctionTrigger{Name: "x", Schedule: "* * *"}, "spec.triggers[0].schedule"},
		{minik8s.FunctionTrigger{Name: "x", Schedule: "@daily", TimeZone: "Nowhere/None"}, "timeZone"},
		{minik8s.FunctionTrigger{Name: "x", Object: &minik8s.FunctionObjectTrigger{APIVersion: "v1", Kind: "Nothing"}}, "there is no such kind"},
		{minik8s.FunctionTrigger{Name: "x", Object: &minik8s.FunctionObjectTrigger{APIVersion: "minik8s.io/v1", Kind: "FunctionCall"}}, "no end"},
	} {
		f := &minik8s.Function{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "bad"}, Spec: minik8s.FunctionSpec{Source: "def run(a): pass", Triggers: []minik8s.FunctionTrigger{x.trigger}}}
		if _, err := c.api.Create(ctx, f, client.WriteOptions{}); err == nil || !strings.Contains(err.Error(), x.says) {
			t.Errorf("%+v: %v", x.trigger, err)
		}
	}
}
