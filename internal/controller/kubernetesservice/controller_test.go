package kubernetesservice

//lint:file-ignore SA1019 Endpoints are served for those who do not know EndpointSlices

import (
	"fmt"
	"log/slog"
	"net/netip"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"minik8s/internal/api"
	"minik8s/internal/client"
	ct "minik8s/internal/controller/controllertest"
)

func master(name, at string, ready corev1.ConditionStatus) *corev1.Node {
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{api.ControlPlane: ""}, Annotations: map[string]string{api.APIAddressAnnotation: at}},
		Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: ready}}}}
}

// setReady writes the condition of a Node.
func setReady(c *ct.Cluster, name string, ready corev1.ConditionStatus) {
	obj, err := c.Admin().Get(c.Context(), client.Key{Kind: api.Nodes, Name: name})
	if err != nil {
		panic(err)
	}
	n := obj.DeepCopyObject().(*corev1.Node)
	n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: ready}}
	if _, err := c.Admin().Update(c.Context(), n, client.WriteOptions{Subresource: "status"}); err != nil {
		panic(err)
	}
}

// The Service leads to the masters that announce themselves and are heard of, and comes again when it is deleted.
func TestFollowsMasters(t *testing.T) {
	c := ct.New(t)
	ct.Create(c, master("m1", "10.0.0.1:6443", corev1.ConditionTrue))
	impostor := master("worker", "10.0.0.66:6443", corev1.ConditionTrue)
	impostor.Labels = nil
	ct.Create(c, impostor)
	c.Start(New(c.As("kubernetes-service"), c.Views(), netip.MustParseAddr("10.96.0.1"), 6443, slog.New(slog.DiscardHandler)).Run)
	until := func(want ...string) {
		t.Helper()
		ct.Until(c, fmt.Sprint("slices with ", want), api.EndpointSlices, func(all []*discoveryv1.EndpointSlice) bool {
			var got []string
			for _, s := range all {
				for _, e := range s.Endpoints {
					got = append(got, fmt.Sprintf("%s %s:%d", s.Name, e.Addresses[0], *s.Ports[0].Port))
				}
			}
			slices.Sort(got)
			return slices.Equal(got, want)
		})
	}
	until("kubernetes 10.0.0.1:6443")
	ct.Create(c, master("m2", "10.0.0.2:6443", corev1.ConditionTrue))
	ct.Create(c, master("m3", "10.0.0.3:7443", corev1.ConditionFalse))
	until("kubernetes 10.0.0.1:6443", "kubernetes 10.0.0.2:6443", "kubernetes-7443 10.0.0.3:7443")
	setReady(c, "m3", corev1.ConditionUnknown)
	until("kubernetes 10.0.0.1:6443", "kubernetes 10.0.0.2:6443")
	setReady(c, "m2", corev1.ConditionUnknown)
	until("kubernetes 10.0.0.1:6443")
	setReady(c, "m1", corev1.ConditionUnknown) // now none is heard of, and all stay
	until("kubernetes 10.0.0.1:6443", "kubernetes 10.0.0.2:6443", "kubernetes-7443 10.0.0.3:7443")
	if _, err := c.Admin().Delete(c.Context(), client.Key{Kind: api.Services, Namespace: "default", Name: "kubernetes"}, nil); err != nil {
		t.Fatal(err)
	}
	ct.Until(c, "the Service again", api.Services, func(all []*corev1.Service) bool {
		return len(all) == 1 && all[0].Spec.ClusterIP == "10.96.0.1" && all[0].Spec.Ports[0].TargetPort.IntVal == 6443
	})
	ct.Until(c, "Endpoints", api.Endpoints, func(all []*corev1.Endpoints) bool {
		return len(all) == 1 && len(all[0].Subsets) == 2 && all[0].Labels[discoveryv1.LabelSkipMirror] == "true"
	})
}
