package hosts_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"minik8s/internal/api"
	"minik8s/internal/api/minik8s"
	"minik8s/internal/client"
)

// The daemon of a worker is killed while its pods have calls of runs: these go on there, and none is made again.
func TestRunsOutliveAWorker(t *testing.T) {
	base, err := filepath.Abs("../../build/functions/python.tar")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(base); err != nil {
		t.Skip("no image with Python: ", err)
	}
	lab := newLab(t)
	prepared(t, lab, "host m1\nhost w1\nhost w2\nstart m1 --function-base "+base+" --node-grace-period=10s --node-unknown-period=5s --heartbeat-interval=1s\n"+
		"join w1 to m1 --heartbeat-interval=1s\njoin w2 to m1 --heartbeat-interval=1s\nexpect node w1 Ready\nexpect node w2 Ready\n")
	m1, w1 := lab.Host("m1"), lab.Host("w1")
	c, err := m1.API()
	if err != nil {
		t.Fatal(err)
	}
	only := func(node string) { // gets new pods
		t.Helper()
		for _, name := range []string{"m1", "w1", "w2"} {
			off := "cordon"
			if name == node {
				off = "uncordon"
			}
			if out, err := m1.Ctl(off, name); err != nil {
				t.Fatal(out, err)
			}
		}
	}
	defer func() {
		if t.Failed() {
			for _, args := range [][]string{{"get", "pods", "-o", "wide"}, {"get", "nodes"}, {"get", "workflowsteps"}, {"get", "functions"}} {
				out, err := m1.Ctl(args...)
				t.Log(out, err)
			}
		}
	}()
	only("w1")
	f := &minik8s.Function{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "slow"}, Spec: minik8s.FunctionSpec{
		Source: "import time\ndef main(params):\n    time.sleep(2)\n    return {'n': params['n'] + 1}\n"}}
	if _, err := c.Create(t.Context(), f, client.WriteOptions{}); err != nil {
		t.Fatal(err)
	}
	const again = `"Retry":[{"ErrorEquals":["States.ALL"],"IntervalSeconds":1,"BackoffRate":1,"MaxAttempts":50}],`
	wf := &minik8s.Workflow{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "daemon"}, Spec: minik8s.WorkflowSpec{Definition: minik8s.JSON{Raw: []byte(`{"StartAt":"a","States":{
		"a":{"Type":"Task","Resource":"slow",` + again + `"Next":"b"},"b":{"Type":"Task","Resource":"slow",` + again + `"End":true}}}`)}}}
	if _, err := c.Create(t.Context(), wf, client.WriteOptions{}); err != nil {
		t.Fatal(err)
	}
	runs := func(prefix string) {
		t.Helper()
		for i := range 3 {
			r := &minik8s.WorkflowRun{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: fmt.Sprintf("%s%d", prefix, i)}, Spec: minik8s.WorkflowRunSpec{Workflow: prefix, Input: minik8s.JSON{Raw: []byte(`{"n":0}`)}}}
			if _, err := c.Create(t.Context(), r, client.WriteOptions{}); err != nil {
				t.Fatal(err)
			}
		}
		eventually(t, "all are in their first state, and an instance runs on w1", func() bool {
			all, _, err := client.All[*corev1.Pod](t.Context(), c, api.Pods, client.ListOptions{Namespace: "default", Labels: labels.SelectorFromSet(labels.Set{minik8s.FunctionLabel: "slow"})})
			if err != nil {
				return false
			}
			for _, p := range all {
				for _, s := range p.Status.Conditions {
					if s.Type == corev1.PodReady && s.Status == corev1.ConditionTrue && p.Spec.NodeName == "w1" {
						return true
					}
				}
			}
			return false
		})
		// A first step that has been committed says that calls have got to the instance, and the second ones are under way.
		eventually(t, "the second calls", func() bool { return steps(t, c, prefix) >= 3 })
	}
	ended := func(prefix string) {
		t.Helper()
		done := 0
		for deadline := time.Now().Add(3 * time.Minute); done < 3; done = 0 { // a node is lost, and an instance comes on another
			if time.Now().After(deadline) {
				t.Fatalf("never: all of %s end", prefix)
			}
			all, _, err := client.All[*minik8s.WorkflowRun](t.Context(), c, api.WorkflowRuns, client.ListOptions{Namespace: "default"})
			if err != nil {
				continue
			}
			for _, r := range all {
				if s := r.Status; r.Spec.Workflow != prefix || !s.Ended() {
					continue
				} else if s.State != minik8s.RunSucceeded || string(s.Output.Raw) != `{"n":2}` {
					t.Fatalf("%s: %s %s %s %s after %d steps", r.Name, s.State, s.Output.Raw, s.Error, s.Cause, s.Steps)
				}
				done++
			}
			if done == 3 {
				break
			}
			time.Sleep(20 * time.Millisecond)
		}
	}
	runs("daemon")
	if err := w1.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	only("w2")
	ended("daemon")
	if n := steps(t, c, "daemon"); n != 6 { // nothing was tried again
		t.Errorf("the loss of a daemon has cost calls: there are %d steps", n)
	}
}

// steps counts the steps of runs whose names begin with prefix.
func steps(t *testing.T, c client.Interface, prefix string) (n int) {
	t.Helper()
	all, _, err := client.All[*minik8s.WorkflowStep](t.Context(), c, api.WorkflowSteps, client.ListOptions{Namespace: "default"})
	if err != nil {
		return 0
	}
	for _, s := range all {
		if strings.HasPrefix(s.Spec.Run, prefix) {
			n++
		}
	}
	return n
}
