package hosts_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"minik8s/internal/api"
	"minik8s/internal/api/podspec"
	"minik8s/internal/client"
	"minik8s/internal/hosts"
	"minik8s/internal/logind/logindtest"
)

// prepared is a lab in which a scenario was played.
func prepared(t *testing.T, lab *hosts.Lab, text string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "x.txt")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	s, err := hosts.Read(path)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := s.Play(t.Context(), lab, &out); err != nil {
		t.Fatalf("%s\n%v", &out, err)
	}
}

// What the API says of a machine that shuts down, and of its pods: each gets its own grace period, within the machine's;
// critical ones end last; new ones are refused.
func TestShutdownOfAMachine(t *testing.T) {
	lab := newLab(t)
	prepared(t, lab, "host m1\nhost w1\nstart m1\n")
	w1 := lab.Host("w1")
	if err := w1.StartLogind(time.Minute); errors.Is(err, logindtest.ErrNoBus) {
		t.Skip(err)
	} else if err != nil {
		t.Fatal(err)
	}
	prepared(t, lab, "join w1 to m1 --heartbeat-interval=1s --shutdown-grace-period=5s --shutdown-grace-period-critical-pods=2s\nexpect node w1 Ready\n")
	c, err := lab.Host("m1").API()
	if err != nil {
		t.Fatal(err)
	}
	create := func(name, class string, grace int64, script string) {
		t.Helper()
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}, Spec: corev1.PodSpec{NodeName: "w1",
			PriorityClassName: class, TerminationGracePeriodSeconds: &grace, Containers: []corev1.Container{{Name: "c", Image: "busybox",
				ImagePullPolicy: corev1.PullIfNotPresent, Command: []string{"sh", "-c", script}}}}}
		if _, err := c.Create(t.Context(), p, client.WriteOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	get := func(name string) *corev1.Pod {
		t.Helper()
		p, err := client.Get[*corev1.Pod](t.Context(), c, client.Key{Kind: api.Pods, Namespace: "default", Name: name})
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	eventually := func(what string, ok func() bool) {
		t.Helper()
		for deadline := time.Now().Add(30 * time.Second); !ok(); time.Sleep(10 * time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatalf("not in time: %s; w1 said:\n%s", what, w1.Said())
			}
		}
	}
	const willing, deaf = "trap 'exit 0' TERM; echo up; while :; do sleep 1000 & wait $!; done", "trap '' TERM; while :; do sleep 1000; done"
	create("willing", "", 30, willing)
	create("deaf", "", 2, deaf)
	create("deafest", "", 3600, deaf)
	create("critical", "system-cluster-critical", 30, willing)
	for _, name := range []string{"willing", "deaf", "deafest", "critical"} {
		eventually(name+" runs", func() bool { return get(name).Status.Phase == corev1.PodRunning })
	}
	for _, name := range []string{"willing", "critical"} { // before its trap is set a shell ignores the signal
		eventually(name+" is up", func() bool { out, _ := lab.Host("m1").Ctl("logs", name); return strings.Contains(out, "up") }) //nolint:errcheck // it is asked again
	}
	eventually("the daemon has its lock", func() bool { return w1.Logind().LockedBy(w1.Pid()) })
	if lock := w1.Logind().Locks()[0]; !strings.HasPrefix(lock, "minik8sd: ") {
		t.Error(lock)
	}

	over := make(chan error, 1)
	go func() { over <- w1.ShutDown(context.WithoutCancel(t.Context())) }()
	ready := func() string {
		node, err := client.Get[*corev1.Node](t.Context(), c, client.Key{Kind: api.Nodes, Name: "w1"})
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range node.Status.Conditions {
			if c.Type == corev1.NodeReady {
				return fmt.Sprint(c.Status, " ", c.Reason, " ", c.Message)
			}
		}
		return ""
	}
	eventually("the Node is not ready", func() bool { return ready() == "False KubeletNotReady node is shutting down" })
	create("late", "", 0, willing)
	eventually("a new pod is refused", func() bool { return get("late").Status.Reason == "NodeShutdown" })
	if p := get("late"); p.Status.Phase != corev1.PodFailed || p.Status.Message != "Pod was rejected: Pod was rejected as the node is shutting down." {
		t.Errorf("%+v", p.Status)
	}
	if err := <-over; err != nil {
		t.Fatalf("%v; w1 said:\n%s", err, w1.Said())
	}
	ended := map[string]time.Time{}
	for name, code := range map[string]int32{"willing": 0, "deaf": 137, "deafest": 137, "critical": 0} {
		p := get(name)
		disrupted := podspec.Condition(p.Status.Conditions, corev1.DisruptionTarget)
		if p.Status.Phase != corev1.PodFailed || p.Status.Reason != "Terminated" || p.Status.Message != "Pod was terminated in response to imminent node shutdown." ||
			disrupted == nil || disrupted.Status != corev1.ConditionTrue || disrupted.Reason != "TerminationByKubelet" {
			t.Errorf("%s: %+v", name, p.Status)
		}
		end := p.Status.ContainerStatuses[0].State.Terminated
		if end == nil || end.ExitCode != code {
			t.Fatalf("%s: %+v", name, p.Status.ContainerStatuses)
		}
		ended[name] = end.FinishedAt.Time
	}
	if ended["deafest"].Before(ended["deaf"]) || ended["critical"].Before(ended["deafest"]) {
		t.Errorf("in another order: %v", ended)
	}

	// It boots: the Node is ready, and what had ended stays so.
	if err := w1.Start(); err != nil {
		t.Fatal(err)
	}
	eventually("the Node is ready", func() bool { return strings.HasPrefix(ready(), "True ") })
	create("next", "", 1, willing)
	eventually("a new pod runs", func() bool { return get("next").Status.Phase == corev1.PodRunning })
	if p := get("willing"); p.Status.Phase != corev1.PodFailed {
		t.Errorf("%+v", p.Status)
	}
}
