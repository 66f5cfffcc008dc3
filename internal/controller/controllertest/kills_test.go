package controllertest_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"

	"minik8s/internal/api"
	ct "minik8s/internal/controller/controllertest"
)

// TestKilledInTheMiddleOfARollout kills the scheduler and the controllers, one at a time and at random moments, while
// deployments roll out on fifty nodes that are nearly full, through bad connections. What is audited is what such a
// moment might break: a pod that is bound twice, a node with more pods than it has room for, a deployment with too
// many pods or too few. In every other run a template changes only when the one before is rolled out everywhere.
func TestKilledInTheMiddleOfARollout(t *testing.T) {
	forSeeds(t, append([]string{"scheduler"}, controllers...), func(t *testing.T, w *world, rng *rand.Rand) {
		const size, room = 50, 2 // 3 deployments of 30 and a surge of 4 for 100 places
		limits := bounds{replicas: 30, surge: 4, unavailable: 3}
		bound := map[types.UID]string{}
		apps := []string{"a", "b", "c"}
		of := map[string]*bounds{"a": new(limits), "b": new(limits), "c": new(limits)}
		w.audit(func(now map[string]*corev1.Pod) error {
			on := map[string]int{}
			for _, p := range now {
				node := p.Spec.NodeName
				if was := bound[p.UID]; was != "" && was != node {
					return fmt.Errorf("%s was bound to %s, and is on %q", p.Name, was, node)
				}
				bound[p.UID] = node
				if on[node]++; node != "" && on[node] > room {
					return fmt.Errorf("%s has %d pods, and room for %d", node, on[node], room)
				}
			}
			for _, app := range apps {
				if err := of[app].check(now, app); err != nil {
					return err
				}
			}
			return nil
		})
		w.HollowUnbound(corev1.ResourceList{corev1.ResourcePods: resource.MustParse("100"), corev1.ResourceCPU: resource.MustParse(fmt.Sprint(room))}, nodes(size)...)
		for _, app := range apps {
			template := ct.Template(app, "x:0")
			template.Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")}
			ct.Create(w.Cluster, limits.deployment(app, template))
		}
		some := func(least int32) {
			ct.Until(w.Cluster, fmt.Sprintf("%d are new everywhere", least), api.Deployments, func(list []*appsv1.Deployment) bool {
				for _, d := range list {
					if s := d.Status; s.ObservedGeneration != d.Generation || s.UpdatedReplicas < least || least == limits.replicas && !limits.done(d) {
						return false
					}
				}
				return true
			})
		}
		victims := []string{"scheduler", "replicaset-controller", "deployment-controller"}
		for i := range 3 {
			if i == 0 || w.seed%2 == 0 {
				some(limits.replicas)
			}
			for _, app := range apps {
				ct.Change(w.Cluster, api.Deployments, app, func(d *appsv1.Deployment) {
					d.Spec.Template.Spec.Containers[0].Image = fmt.Sprint("x:", i+1)
				})
			}
			for range 2 {
				victim := victims[rng.IntN(len(victims))]
				some(rng.Int32N(limits.replicas / 3))
				w.kills[victim]()
				w.begin(victim)
			}
		}
		w.heal()
		some(limits.replicas)
	})
}
