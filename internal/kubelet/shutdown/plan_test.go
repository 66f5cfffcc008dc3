package shutdown

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"minik8s/internal/kubelet/plan/plantest"
)

func TestWithin(t *testing.T) {
	for _, c := range []struct{ asked, granted, want string }{
		{"40s 10s", "42s", "40s 10s"},
		{"40s 10s", "1h", "40s 10s"},
		{"40s 10s", "41s", "39s 9.75s"},
		{"40s 10s", "5s", "3s 750ms"},
		{"40s 40s", "5s", "3s 3s"},
		{"40s 0s", "5s", "3s 0s"},
		{"40s 10s", "2s", "1s 250ms"}, // so little that half is kept for the last status
		{"40s 10s", "0s", "0s 0s"},
		{"0s 0s", "5s", "0s 0s"},
	} {
		var all, critical string
		fmt.Sscan(c.asked, &all, &critical) //nolint:errcheck // two words
		p := Periods{duration(t, all), duration(t, critical)}.Within(duration(t, c.granted))
		if got := fmt.Sprint(p.All, p.Critical); got != c.want {
			t.Errorf("%s of a machine that waits %s: %s, want %s", c.asked, c.granted, got, c.want)
		}
	}
}

func duration(t *testing.T, s string) time.Duration {
	t.Helper()
	d, err := time.ParseDuration(s)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func priority(n int32) func(*corev1.Pod) { return func(p *corev1.Pod) { p.Spec.Priority = &n } }

func phase(p corev1.PodPhase) func(*corev1.Pod) {
	return func(pod *corev1.Pod) { pod.Status.Phase = p }
}

func TestGroups(t *testing.T) {
	all := []*corev1.Pod{
		plantest.Pod("node-critical", priority(2_000_001_000)), plantest.Pod("plain"), plantest.Pod("low", priority(-5)),
		plantest.Pod("high", priority(1_999_999_999)), plantest.Pod("cluster-critical", priority(2_000_000_000)),
		plantest.Pod("done", phase(corev1.PodSucceeded)), plantest.Pod("failed", phase(corev1.PodFailed), priority(2_000_000_000)),
	}
	for _, c := range []struct {
		pods []*corev1.Pod
		want string
	}{
		{nil, ""},
		{all, "30s: plain low high; 10s: node-critical cluster-critical"},
		{all[1:4], "30s: plain low high"},
		{all[4:], "10s: cluster-critical"},
		{all[5:], ""},
	} {
		var got []string
		for _, g := range Groups(c.pods, Periods{All: 40 * time.Second, Critical: 10 * time.Second}) {
			line := g.Period.String() + ":"
			for _, p := range g.Pods {
				line += " " + p.Name
			}
			got = append(got, line)
		}
		if strings.Join(got, "; ") != c.want {
			t.Errorf("got %q, want %q", got, c.want)
		}
	}
}
