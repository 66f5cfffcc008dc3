package sightings_test

import (
	"context"
	"log/slog"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"minik8s/internal/api"
	"minik8s/internal/client"
	"minik8s/internal/client/local"
	"minik8s/internal/controller/sightings"
	"minik8s/internal/informer"
	"minik8s/internal/registry"
	"minik8s/internal/registry/registrytest"
)

// cluster is what a master that stands by sees, while another one leads and writes.
type cluster struct {
	*testing.T
	*local.Client
	reader *informer.Informer[*corev1.Node]
	jobs   *informer.Informer[*batchv1.Job]
}

func newCluster(t *testing.T) *cluster {
	return &cluster{T: t, Client: local.New(registrytest.New(t), registry.System)}
}

// standBy returns what a master has seen that stands by from now on.
func (c *cluster) standBy() *sightings.Sightings {
	s := sightings.New()
	views := informer.NewViews(c.Client, slog.New(slog.DiscardHandler))
	c.reader = informer.New[*corev1.Node](c.Client, api.Nodes, informer.Options{Views: views})
	c.jobs = informer.New[*batchv1.Job](c.Client, api.Jobs, informer.Options{Views: views})
	ctx, cancel := context.WithCancel(context.Background())
	ready, ended := make(chan struct{}, 3), make(chan error, 3)
	go func() {
		ended <- s.Run(ctx, c.Client, views, slog.New(slog.DiscardHandler), func() { ready <- struct{}{} })
	}()
	go func() { ended <- c.reader.Run(ctx, func() { ready <- struct{}{} }) }()
	go func() { ended <- c.jobs.Run(ctx, func() { ready <- struct{}{} }) }()
	c.Cleanup(func() {
		cancel()
		for range 3 {
			if err := <-ended; err != nil {
				c.Error(err)
			}
		}
	})
	for range 3 {
		<-ready
	}
	return s
}

// taint gives a node a taint, and returns the node as a master that stands by sees it.
func (c *cluster) taint(name string, added *metav1.Time) *corev1.Node {
	c.Helper()
	node, err := client.Get[*corev1.Node](context.Background(), c.Client, client.Key{Kind: api.Nodes, Name: name})
	if err != nil {
		c.Fatal(err)
	}
	node = node.DeepCopy()
	node.Spec.Taints = []corev1.Taint{{Key: "gone", Effect: corev1.TaintEffectNoExecute, TimeAdded: added}}
	obj, err := c.Update(context.Background(), node, client.WriteOptions{})
	if err != nil {
		c.Fatal(err)
	}
	c.await(func() bool {
		have, ok := c.reader.Get("", name)
		return ok && have.ResourceVersion == obj.GetResourceVersion()
	})
	return obj.(*corev1.Node)
}

func (c *cluster) await(is func() bool) {
	c.Helper()
	for until := time.Now().Add(10 * time.Second); !is(); time.Sleep(time.Millisecond) {
		if time.Now().After(until) {
			c.Fatal("the view does not follow")
		}
	}
}

func (c *cluster) node(name string) {
	c.Helper()
	if _, err := c.Create(context.Background(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}, client.WriteOptions{}); err != nil {
		c.Fatal(err)
	}
	c.await(func() bool { _, ok := c.reader.Get("", name); return ok })
}

func at(d time.Duration) *metav1.Time {
	t := metav1.NewTime(time.Now().Add(d).Truncate(time.Second))
	return &t
}

// near reports whether a moment is about now.
func near(t time.Time) bool { return time.Since(t).Abs() < 10*time.Second }

// What this master saw happen, it knows by its own clock, whatever the leader's said. It answers the same each time.
func TestAnotherClock(t *testing.T) {
	c := newCluster(t)
	s := c.standBy()
	c.node("n")
	for what, said := range map[string]*metav1.Time{"an hour ahead": at(time.Hour), "an hour behind": at(-time.Hour), "none": nil} {
		node := c.taint("n", said)
		first := s.Taint(node, &node.Spec.Taints[0])
		if !near(first) {
			t.Errorf("%s: %s", what, first)
		}
		if again := s.Taint(node, &node.Spec.Taints[0]); !again.Equal(first) {
			t.Errorf("%s: %s, and then %s", what, first, again)
		}
	}
	now := at(0)
	node := c.taint("n", now)
	if got := s.Taint(node, &node.Spec.Taints[0]); !got.Equal(now.Time) {
		t.Errorf("clocks agree: %s instead of %s", got, now)
	}
}

// Of what happened before it began to look, a master knows what the object says; but that it lies in the future cannot be.
func TestBefore(t *testing.T) {
	c := newCluster(t)
	c.standBy()
	c.node("past")
	c.node("future")
	past, future := c.taint("past", at(-time.Hour)), c.taint("future", at(time.Hour))
	s := c.standBy()
	if got := s.Taint(past, &past.Spec.Taints[0]); !got.Equal(past.Spec.Taints[0].TimeAdded.Time) {
		t.Error(got)
	}
	if got := s.Taint(future, &future.Spec.Taints[0]); !near(got) {
		t.Error(got)
	}
}

func TestStartOfAJob(t *testing.T) {
	c := newCluster(t)
	s := c.standBy()
	seconds := int64(60)
	obj, err := c.Create(context.Background(), &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "j"},
		Spec: batchv1.JobSpec{ActiveDeadlineSeconds: &seconds, Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
			RestartPolicy: corev1.RestartPolicyNever, Containers: []corev1.Container{{Name: "c", Image: "i"}}}}}}, client.WriteOptions{})
	if err != nil {
		t.Fatal(err)
	}
	c.await(func() bool { _, ok := c.jobs.Get("default", "j"); return ok })
	if got := s.Start(obj.(*batchv1.Job)); !got.IsZero() {
		t.Error("it has not started:", got)
	}
	job := obj.DeepCopyObject().(*batchv1.Job)
	job.Status.StartTime = at(-time.Hour)
	if obj, err = c.Update(context.Background(), job, client.WriteOptions{Subresource: "status"}); err != nil {
		t.Fatal(err)
	}
	c.await(func() bool { have, _ := c.jobs.Get("default", "j"); return have.Status.StartTime != nil })
	if got := s.Start(obj.(*batchv1.Job)); !near(got) {
		t.Error(got)
	}
}

// A pod is ready since this master saw it become so, whatever its node's clock says; of one that was ready before, the pod's word is taken, but
// not for the future.
func TestPodsOfNodesWithOtherClocks(t *testing.T) {
	pod := func(ready corev1.ConditionStatus, since *metav1.Time) *corev1.Pod {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p", UID: "p"}}
		p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: ready, LastTransitionTime: *since}}
		return p
	}
	for _, x := range []struct {
		name    string
		old     *corev1.Pod
		since   *metav1.Time
		saysNow bool
	}{
		{"it becomes ready, an hour ahead", pod(corev1.ConditionFalse, at(0)), at(time.Hour), true},
		{"it becomes ready, an hour behind", pod(corev1.ConditionFalse, at(-2*time.Hour)), at(-time.Hour), true},
		{"it was ready, an hour ahead", nil, at(time.Hour), true},
		{"it was ready an hour ago", nil, at(-time.Hour), false},
	} {
		s := sightings.New()
		now := pod(corev1.ConditionTrue, x.since)
		s.Pod(x.old, now)
		first := s.Ready(now)
		if near(first) != x.saysNow || !x.saysNow && !first.Equal(x.since.Time) {
			t.Errorf("%s: %s", x.name, first)
		}
		s.Pod(now, now.DeepCopy())
		if again := s.Ready(now); !again.Equal(first) {
			t.Errorf("%s: %s, and then %s", x.name, first, again)
		}
		s.Pods([]*corev1.Pod{now})
		if again := s.Ready(now); !again.Equal(first) {
			t.Errorf("%s: %s, and after a list %s", x.name, first, again)
		}
		s.Pods(nil)
		if s.Holds() != 0 {
			t.Errorf("%s: a pod that is gone is remembered", x.name)
		}
		if gone := pod(corev1.ConditionFalse, at(0)); !s.Ready(gone).IsZero() {
			t.Errorf("%s: one that is not ready is so since %s", x.name, s.Ready(gone))
		}
	}
}
