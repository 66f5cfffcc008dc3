package scheduler

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"minik8s/internal/api"
	"minik8s/internal/api/minik8s"
	"minik8s/internal/client"
)

func TestExplainsAndWakes(t *testing.T) {
	c := start(t, nil)
	c.create(podOf("big", "3"))
	said := func(want string) func() string {
		return func() string {
			if got := c.why("big"); got != "Unschedulable: "+want {
				return fmt.Sprintf("the pod says %q, want %q", got, want)
			}
			return ""
		}
	}
	c.eventually(5*time.Second, said("no nodes available to schedule pods"))
	c.node("n1", "2")
	c.eventually(5*time.Second, said("0/1 nodes are available: 1 Insufficient cpu."))
	c.create(podOf("small", "2"))
	c.bound(5*time.Second, "small")
	c.node("n1", "5") // the node grows
	c.bound(15*time.Second, "big")
	c.eventually(5*time.Second, func() string {
		if n, m := len(c.eventsOf("FailedScheduling")), len(c.eventsOf("Scheduled")); n < 2 || m != 2 {
			return fmt.Sprintf("%d FailedScheduling, %d Scheduled", n, m)
		}
		return ""
	})
	if why := c.why("big"); why != "" {
		t.Errorf("a bound pod says %q", why)
	}
}

func TestPodGoneWakes(t *testing.T) {
	c := start(t, nil)
	c.node("n1", "2")
	c.create(podOf("first", "2"))
	c.bound(5*time.Second, "first")
	c.create(podOf("second", "2"))
	c.eventually(5*time.Second, func() string {
		if c.why("second") == "" {
			return "second does not say why it waits"
		}
		return ""
	})
	c.delete("first")
	c.bound(5*time.Second, "second")
}

func TestGates(t *testing.T) {
	c := start(t, nil)
	c.node("n1", "2")
	gated := podOf("gated", "1")
	gated.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "example.com/wait"}}
	c.create(gated)
	c.create(podOf("free", "1"))
	c.bound(5*time.Second, "free")
	pod := c.pod("gated").DeepCopy()
	if pod.Spec.NodeName != "" || pod.Status.Conditions[0].Reason != corev1.PodReasonSchedulingGated {
		t.Fatalf("%+v", pod.Status)
	}
	pod.Spec.SchedulingGates = nil
	if _, err := c.admin.Update(t.Context(), pod, client.WriteOptions{}); err != nil {
		t.Fatal(err)
	}
	c.bound(5*time.Second, "gated")
}

func TestStrategyChangesAtRunTime(t *testing.T) {
	c := start(t, nil)
	c.node("n1", "8")
	c.node("n2", "8")
	c.create(podOf("a", "1"))
	c.bound(5*time.Second, "a")
	cfg := &minik8s.ClusterConfig{ObjectMeta: metav1.ObjectMeta{Name: minik8s.ClusterConfigName}}
	cfg.Spec.Scheduler.Strategy = "max-pods"
	c.create(cfg)
	c.eventually(5*time.Second, func() string {
		if evs := c.eventsOf("StrategyChanged"); len(evs) != 1 || evs[0].InvolvedObject.Kind != "ClusterConfig" {
			return fmt.Sprintf("events %+v", evs)
		}
		return ""
	})
	for i := range 3 {
		name := fmt.Sprintf("b%d", i)
		c.create(podOf(name, "1"))
		c.bound(5*time.Second, name)
		if got, want := c.pod(name).Spec.NodeName, c.pod("a").Spec.NodeName; got != want {
			t.Errorf("%s is on %s, a on %s", name, got, want)
		}
	}
	cfg.Spec.Scheduler.Strategy = "best"
	if _, err := c.admin.Update(t.Context(), cfg, client.WriteOptions{}); err == nil {
		t.Error("an unknown strategy was taken")
	}
	cfg.Name, cfg.Spec.Scheduler.Strategy = "other", "random"
	if _, err := c.admin.Create(t.Context(), cfg, client.WriteOptions{}); err == nil {
		t.Error("a second ClusterConfig was taken")
	}
}

// TestLeastUsed: with min-cpu a pod goes to the node that uses least now, whatever its pods request; and while another strategy
// counts nobody is asked.
func TestLeastUsed(t *testing.T) {
	c := start(t, nil)
	c.used.Store("n1", Usage{CPUMillis: 3000, MemoryBytes: 1 << 30})
	c.used.Store("n2", Usage{CPUMillis: 100, MemoryBytes: 2 << 30})
	c.node("n1", "8")
	c.node("n2", "8")
	first := podOf("first", "6")
	first.Spec.NodeSelector = map[string]string{corev1.LabelHostname: "n2"}
	c.create(first)
	c.bound(5*time.Second, "first")
	if n := c.asked.Load(); n != 0 {
		t.Errorf("it was asked %d times what nodes use, with the strategy spread", n)
	}
	cfg := &minik8s.ClusterConfig{ObjectMeta: metav1.ObjectMeta{Name: minik8s.ClusterConfigName}}
	for strategy, want := range map[string]string{"min-cpu": "n2", "min-mem": "n1"} {
		cfg.Spec.Scheduler.Strategy = strategy
		if _, err := c.admin.Create(t.Context(), cfg, client.WriteOptions{}); apierrors.IsAlreadyExists(err) {
			_, err = c.admin.Update(t.Context(), cfg, client.WriteOptions{})
			if err != nil {
				t.Fatal(err)
			}
		} else if err != nil {
			t.Fatal(err)
		}
		c.eventually(5*time.Second, func() string {
			name := "probe-" + strategy
			c.create(podOf(name, "100m"))
			c.bound(5*time.Second, name)
			got := c.pod(name).Spec.NodeName
			c.delete(name)
			if got != want {
				return "with " + strategy + " it is on " + got
			}
			return ""
		})
	}
	if c.asked.Load() == 0 {
		t.Error("nobody was asked")
	}
}

// TestFaults makes and deletes pods while bindings fail: before they reach the API, and after, so that the
// scheduler does not hear that they were written. In the end every pod that fits has one node, none was
// bound twice, and at no moment was a node over-committed.
func TestFaults(t *testing.T) {
	var mu sync.Mutex
	r := rand.New(rand.NewPCG(3, 3))
	dice := func(n int) int {
		mu.Lock()
		defer mu.Unlock()
		return r.IntN(n)
	}
	c := start(t, func(call func() error) error {
		switch dice(10) {
		case 0:
			return errors.New("lost on the way")
		case 1:
			call() //nolint:errcheck // its answer is what gets lost
			return errors.New("the answer is lost")
		case 2:
			time.Sleep(time.Duration(dice(20)) * time.Millisecond)
		}
		return call()
	})
	const nodes, perNode = 5, 4
	watch, err := c.admin.Watch(t.Context(), api.Pods, client.WatchOptions{})
	if err != nil {
		t.Fatal(err)
	}
	watched := make(chan struct{})
	go func() { // every state that ever was
		defer close(watched)
		at := map[string]string{} // by uid
		for e := range watch.Events() {
			if e.Object == nil {
				continue
			}
			p := e.Object.(*corev1.Pod)
			uid := string(p.UID)
			if e.Type == client.Deleted {
				delete(at, uid)
				continue
			}
			if was := at[uid]; was != "" && was != p.Spec.NodeName {
				t.Errorf("%s moved from %s to %q", p.Name, was, p.Spec.NodeName)
			}
			if p.Spec.NodeName == "" {
				continue
			}
			at[uid] = p.Spec.NodeName
			on := 0
			for _, node := range at {
				if node == p.Spec.NodeName {
					on++
				}
			}
			if on > perNode {
				t.Errorf("%d pods of one core on %s, which has %d", on, p.Spec.NodeName, perNode)
			}
		}
	}()
	for i := range nodes {
		c.node(fmt.Sprintf("n%d", i), fmt.Sprint(perNode))
	}
	alive := map[string]bool{}
	for i := range 120 {
		if len(alive) >= nodes*perNode-2 || len(alive) > 0 && dice(3) == 0 {
			for name := range alive {
				c.delete(name)
				delete(alive, name)
				break
			}
			continue
		}
		name := fmt.Sprintf("p%d", i)
		c.create(podOf(name, "1"))
		alive[name] = true
		if dice(4) == 0 {
			time.Sleep(time.Duration(dice(10)) * time.Millisecond)
		}
	}
	var names []string
	for name := range alive {
		names = append(names, name)
	}
	c.bound(60*time.Second, names...)
	watch.Stop()
	<-watched
	c.mu.Lock()
	defer c.mu.Unlock()
	for uid, n := range c.binds {
		if n > 1 {
			t.Errorf("pod %s was bound %d times", uid, n)
		}
	}
}
