package plan

import (
	"fmt"
	"slices"
	"testing"
)

func TestSpreadGoesRound(t *testing.T) {
	c := uniform(5)
	for round := range 3 {
		var got []string
		for i := range 5 {
			got = append(got, assign(t, c, asking(fmt.Sprintf("p%d-%d", round, i), "100m", "100Mi")))
		}
		slices.Sort(got)
		if got = slices.Compact(got); len(got) != 5 {
			t.Errorf("round %d: only %v", round, got)
		}
	}
	// Pods without requests are spread too, and affect each other.
	big := asking("big", "16", "32Gi")
	at := assign(t, c, big)
	for i := range 8 {
		if got := assign(t, c, aPod(t, fmt.Sprintf("idle%d", i), nil, "containers: [{name: c}]")); got == at {
			t.Errorf("pod %d went to the loaded node", i)
		}
	}
}

func TestStrategies(t *testing.T) {
	c := uniform(4)
	for i, n := range []int{3, 1, 2, 4} { // pods on n0..n3
		for j := range n {
			c.Place(c.Pod(asking(fmt.Sprintf("old%d-%d", i, j), "1", "1Gi")), fmt.Sprintf("n%d", i))
		}
	}
	c.SetUsage("n0", 100, 9<<30)
	c.SetUsage("n1", 5000, 8<<30)
	c.SetUsage("n2", 4000, 1<<30)
	c.SetUsage("n3", 3000, 7<<30)
	for s, want := range map[Strategy]string{Spread: "n1", MinPods: "n1", MaxPods: "n3", MinCPU: "n0", MinMem: "n2"} {
		c.SetStrategy(s)
		if got, why := c.Choose(c.Pod(asking("p", "1", "1Gi"))); got != want {
			t.Errorf("%s: %q (%+v), want %s", s, got, why, want)
		}
	}
	// Pods placed between two reports count.
	c.SetStrategy(MinCPU)
	c.Place(c.Pod(asking("burst", "6", "1Gi")), "n0")
	if got, _ := c.Choose(c.Pod(asking("p", "1", "1Gi"))); got != "n3" {
		t.Errorf("min-cpu after a placement: %s", got)
	}
	c.SetUsage("n0", 200, 9<<30)
	if got, _ := c.Choose(c.Pod(asking("p", "1", "1Gi"))); got != "n0" {
		t.Errorf("min-cpu after a report: %s", got)
	}
}

func TestRandomIsFair(t *testing.T) {
	c := uniform(4)
	c.SetStrategy(Random)
	seen := map[string]int{}
	for range 4000 {
		node, _ := c.Choose(c.Pod(asking("p", "1", "1Gi")))
		seen[node]++
	}
	for node, n := range seen {
		if n < 800 || n > 1200 {
			t.Errorf("%s was chosen %d times of 4000", node, n)
		}
	}
}

// TestRoundRobinQueue checks the second seed system's order, a queue of nodes. The head takes a pod and goes to the
// tail. A node chosen by anti-affinity goes to the tail too. A pod that names its node does not change the queue.
func TestRoundRobinQueue(t *testing.T) {
	c := uniform(3)
	c.SetStrategy(RoundRobin)
	next := func(name string) string { return assign(t, c, asking(name, "1", "1Gi")) }
	if a, b := next("a"), next("b"); a != "n0" || b != "n1" {
		t.Fatalf("%s, %s", a, b)
	}
	named := aPod(t, "named", nil, "{nodeName: n2, containers: [{name: c}]}")
	c.Place(c.Pod(named), "n2")
	if got := next("c"); got != "n2" {
		t.Errorf("after a named pod: %s", got)
	}
	const soft = `
containers: [{name: c}]
affinity: {podAntiAffinity: {preferredDuringSchedulingIgnoredDuringExecution: [{weight: 100, podAffinityTerm: {topologyKey: kubernetes.io/hostname, labelSelector: {matchLabels: {apart: "yes"}}}}]}}`
	apart := func(name string) string { return assign(t, c, aPod(t, name, map[string]string{"apart": "yes"}, soft)) }
	if got := apart("x"); got != "n0" {
		t.Errorf("the first apart: %s", got)
	}
	if got := next("d"); got != "n1" {
		t.Errorf("the head after it: %s", got)
	}
	// n2 is the head now, then n0, which has x. So the next pods that must be apart go to n2 and n1.
	if x, y := apart("y"), apart("z"); x != "n2" || y != "n1" {
		t.Errorf("apart: %s, %s", x, y)
	}
	// Every node has one. The preference cannot be met any more, but it is only a preference.
	if got := apart("w"); got != "n0" {
		t.Errorf("the fourth: %s", got)
	}
}

func TestWishes(t *testing.T) {
	for _, test := range []struct{ name, spec, want string }{
		{"preferred node affinity", `{nodeAffinity: {preferredDuringSchedulingIgnoredDuringExecution: [{weight: 1, preference: {matchExpressions: [{key: kubernetes.io/hostname, operator: In, values: [n2]}]}}]}}`, "n2"},
		{"preferred affinity", `{podAffinity: {preferredDuringSchedulingIgnoredDuringExecution: [{weight: 1, podAffinityTerm: {topologyKey: kubernetes.io/hostname, labelSelector: {matchLabels: {app: web}}}}]}}`, "n1"},
	} {
		c := uniform(3)
		web := asking("web", "8", "8Gi")
		web.Labels = map[string]string{"app": "web"}
		c.Place(c.Pod(web), "n1")
		if got := assign(t, c, aPod(t, "p", nil, "containers: [{name: c}]\naffinity: "+test.spec)); got != test.want {
			t.Errorf("%s: %s", test.name, got)
		}
	}
	c := uniform(3)
	for i := range 2 {
		pod := asking(fmt.Sprintf("web%d", i), "1m", "1")
		pod.Labels = map[string]string{"app": "web"}
		c.Place(c.Pod(pod), fmt.Sprintf("n%d", i))
	}
	c.Place(c.Pod(asking("heavy", "16", "16Gi")), "n2")
	soft := "containers: [{name: c}]\ntopologySpreadConstraints: [{maxSkew: 1, topologyKey: kubernetes.io/hostname, whenUnsatisfiable: ScheduleAnyway, labelSelector: {matchLabels: {app: web}}}]"
	if got := assign(t, c, aPod(t, "p", map[string]string{"app": "web"}, soft)); got != "n2" {
		t.Errorf("ScheduleAnyway: %s", got)
	}
}

func TestPinned(t *testing.T) {
	c := uniform(100)
	spec := "containers: [{name: c}]\naffinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchFields: [{key: metadata.name, operator: In, values: [n42]}]}]}}}"
	if got := assign(t, c, aPod(t, "p", nil, spec)); got != "n42" {
		t.Errorf("%s", got)
	}
	if len(c.classes) != 0 {
		t.Error("a pinned pod needs no class")
	}
	c.RemoveNode("n42")
	if _, why := c.Choose(c.Pod(aPod(t, "q", nil, spec))); why == nil || why.Causes != BySelector {
		t.Errorf("%+v", why)
	}
}
