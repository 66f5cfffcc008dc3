package roles_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"minik8s/internal/api"
	"minik8s/internal/client"
)

// A rollout that the daemon's death interrupts, at any moment, goes on when it is back and ends with what
// was asked for: the new pods, so many and no more, each with one container.
func TestKilledInARollout(t *testing.T) {
	needRoot(t)
	p := newProcess(t)
	c := p.up()
	const replicas = 3
	n := int32(replicas)
	one := shell("x", forever)
	one.Labels = map[string]string{"app": "web"}
	_, err := c.Create(context.Background(), &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"},
		Spec: appsv1.DeploymentSpec{Replicas: &n, Selector: &metav1.LabelSelector{MatchLabels: one.Labels},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: one.Labels}, Spec: one.Spec}}}, client.WriteOptions{})
	if err != nil {
		t.Fatal(err)
	}
	key := client.Key{Kind: api.Deployments, Namespace: "default", Name: "web"}
	settled := func(round string) func() bool {
		return func() bool {
			d, err := client.Get[*appsv1.Deployment](context.Background(), c, key)
			if err != nil || d.Status.ObservedGeneration != d.Generation || d.Status.UpdatedReplicas != replicas ||
				d.Status.Replicas != replicas || d.Status.AvailableReplicas != replicas {
				return false
			}
			pods, _, err := client.All[*corev1.Pod](context.Background(), c, api.Pods, client.ListOptions{Namespace: "default", Labels: labels.SelectorFromSet(one.Labels)})
			if err != nil || len(pods) != replicas {
				return false
			}
			for _, pod := range pods {
				if pod.Annotations["round"] != round {
					return false
				}
			}
			return true
		}
	}
	p.eventually("rolled out", settled(""))
	for round := range 3 {
		r := fmt.Sprint(round)
		patch := client.Patch{Type: types.MergePatchType, Data: []byte(`{"spec":{"template":{"metadata":{"annotations":{"round":"` + r + `"}}}}}`)}
		if _, err := c.Patch(context.Background(), key, patch, client.WriteOptions{}); err != nil {
			t.Fatal(err)
		}
		pause(time.Duration(30+round*80) * time.Millisecond)
		p.kill()
		c = p.up()
		p.eventually("rolled out after a crash", settled(r))
		p.eventually("one shell for each pod", func() bool { return sleepers(p.dir) == replicas })
	}
	_, err = c.Delete(context.Background(), key, nil)
	if err != nil {
		t.Fatal(err)
	}
	p.eventually("everything collected", func() bool {
		for _, kind := range []*api.Kind{api.ReplicaSets, api.Pods} {
			if l, err := c.List(context.Background(), kind, client.ListOptions{Namespace: "default"}); err != nil || len(l.Items) > 0 {
				return false
			}
		}
		return sleepers(p.dir) == 0
	})
}
