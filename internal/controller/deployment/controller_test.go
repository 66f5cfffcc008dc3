package deployment

import (
	"log/slog"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"minik8s/internal/api"
	ct "minik8s/internal/controller/controllertest"
	"minik8s/internal/controller/replicaset"
	"minik8s/internal/controller/sightings"
	"minik8s/internal/events"
)

func start(t *testing.T) *ct.Cluster {
	c := ct.New(t)
	c.Hollow(nil, "n1", "n2")
	log := slog.New(slog.DiscardHandler)
	c.Start(replicaset.New(c.As("replicaset-controller"), c.Views(), events.New(c.As("replicaset-controller"), "t", "", nil), sightings.New(), log).Run)
	c.Start(New(c.As("deployment-controller"), c.Views(), events.New(c.As("deployment-controller"), "t", "", nil), log).Run)
	return c
}

// A deployment whose set is refused, here for its name, says so.
func TestSaysThatItsSetIsRefused(t *testing.T) {
	c := start(t)
	ct.Create(c, &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: strings.Repeat("x", 250)}, Spec: appsv1.DeploymentSpec{
		Selector: ct.Selector("web"), Template: ct.Template("web", "x:1")}})
	d := ct.Until(c, "said so", api.Deployments, func(list []*appsv1.Deployment) bool {
		c := find(&list[0].Status, appsv1.DeploymentProgressing)
		return c != nil && c.Reason == failedToCreate && c.Status == corev1.ConditionFalse
	})[0]
	if d.Status.ObservedGeneration != d.Generation {
		t.Errorf("%+v", d.Status)
	}
}

func TestRollsOutInACluster(t *testing.T) {
	c := start(t)
	ct.Create(c, &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "web"}, Spec: appsv1.DeploymentSpec{
		Replicas: new(int32(6)), Selector: ct.Selector("web"), Template: ct.Template("web", "x:1")}})
	rolled := func(list []*appsv1.Deployment) bool {
		d := list[0]
		c := find(&d.Status, appsv1.DeploymentProgressing)
		return complete(d, &d.Status) && c != nil && c.Reason == newSetAvailable
	}
	ct.Until(c, "rolled out", api.Deployments, rolled)
	for _, image := range []string{"x:2", "x:3", "x:1"} {
		ct.Change(c, api.Deployments, "web", func(d *appsv1.Deployment) { d.Spec.Template.Spec.Containers[0].Image = image })
		ct.Until(c, "rolled out "+image, api.Deployments, rolled)
	}
	d := ct.Until(c, "revision 4", api.Deployments, func(list []*appsv1.Deployment) bool {
		return list[0].Annotations[revisionAnnotation] == "4"
	})[0]
	if d.Status.UpdatedReplicas != 6 {
		t.Errorf("%+v", d.Status)
	}
	ct.Until(c, "three sets, one of them with pods", api.ReplicaSets, func(list []*appsv1.ReplicaSet) bool {
		busy := 0
		for _, rs := range list {
			if rs.Status.Replicas > 0 {
				busy++
			}
		}
		return len(list) == 3 && busy == 1
	})
}
