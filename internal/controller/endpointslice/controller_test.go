package endpointslice

//lint:file-ignore SA1019 Endpoints are served for those who do not know EndpointSlices

import (
	"fmt"
	"log/slog"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"minik8s/internal/api"
	"minik8s/internal/client"
	ct "minik8s/internal/controller/controllertest"
)

func start(c *ct.Cluster) (kill func()) {
	return c.Start(New(c.As("endpointslice-controller"), c.Views(), slog.New(slog.DiscardHandler)).Run)
}

func runningPod(name string, labels map[string]string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, Labels: labels},
		Spec: corev1.PodSpec{NodeName: "n1", Containers: []corev1.Container{{Name: "c", Image: "i", Ports: []corev1.ContainerPort{{Name: "http", ContainerPort: 8080}}}}}}
}

// setStatus gives a pod an address and makes it ready or not.
func setStatus(c *ct.Cluster, name, ip string, ready corev1.ConditionStatus) {
	obj, err := c.Admin().Get(c.Context(), client.Key{Kind: api.Pods, Namespace: "default", Name: name})
	if err != nil {
		panic(err)
	}
	upd := obj.DeepCopyObject().(*corev1.Pod)
	upd.Status = corev1.PodStatus{Phase: corev1.PodRunning, PodIP: ip, PodIPs: []corev1.PodIP{{IP: ip}},
		Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: ready}}}
	if _, err := c.Admin().Update(c.Context(), upd, client.WriteOptions{Subresource: "status"}); err != nil {
		panic(err)
	}
}

// shown are the endpoints of a Service by its slices: "ip:port ready".
func shown(service string, list []*discoveryv1.EndpointSlice) []string {
	var out []string
	for _, s := range list {
		if s.Labels[discoveryv1.LabelServiceName] != service {
			continue
		}
		for _, p := range s.Ports {
			for _, e := range s.Endpoints {
				out = append(out, fmt.Sprintf("%s:%d/%s %t", e.Addresses[0], *p.Port, *p.Protocol, *e.Conditions.Ready))
			}
		}
	}
	slices.Sort(out)
	return out
}

func until(c *ct.Cluster, service string, want ...string) {
	ct.Until(c, fmt.Sprintf("slices of %s with %q", service, want), api.EndpointSlices, func(all []*discoveryv1.EndpointSlice) bool {
		return slices.Equal(shown(service, all), want)
	})
}

// As upstream's conformance tests "should create Endpoints and EndpointSlices for Pods matching a Service" and "should
// serve endpoints on same port and different protocols", of the part that is this controller's.
func TestFollowsPods(t *testing.T) {
	c := ct.New(t)
	kill := start(c)
	svc := web(nil)
	svc.UID, svc.Spec.ClusterIP, svc.Spec.ClusterIPs, svc.Labels = "", "", nil, map[string]string{"team": "a"}
	svc = ct.Create(c, svc)
	ct.Until(c, "an empty slice", api.EndpointSlices, func(all []*discoveryv1.EndpointSlice) bool {
		return len(all) == 1 && len(all[0].Endpoints) == 0 && all[0].Labels[discoveryv1.LabelManagedBy] == sliceKeeper && all[0].Labels["team"] == "a" &&
			metav1.IsControlledBy(all[0], svc)
	})
	ct.Create(c, runningPod("a", svc.Spec.Selector))
	ct.Create(c, runningPod("other", map[string]string{"app": "other"}))
	setStatus(c, "other", "10.244.0.9", corev1.ConditionTrue)
	setStatus(c, "a", "10.244.0.2", corev1.ConditionFalse)
	until(c, "web", "10.244.0.2:8080/TCP false")
	setStatus(c, "a", "10.244.0.2", corev1.ConditionTrue)
	until(c, "web", "10.244.0.2:8080/TCP true")
	ct.Until(c, "Endpoints", api.Endpoints, func(all []*corev1.Endpoints) bool {
		return len(all) == 1 && len(all[0].Subsets) == 1 && len(all[0].Subsets[0].Addresses) == 1 && all[0].Labels[managedBy] == endpointsOwner && all[0].Labels["team"] == "a"
	})
	ct.Change(c, api.Services, "web", func(s *corev1.Service) {
		s.Spec.Ports = append(s.Spec.Ports, corev1.ServicePort{Name: "udp", Protocol: corev1.ProtocolUDP, Port: 80, TargetPort: s.Spec.Ports[0].TargetPort})
		s.Spec.Ports[1].TargetPort.Type, s.Spec.Ports[1].TargetPort.IntVal = 0, 8080
	})
	until(c, "web", "10.244.0.2:8080/TCP true", "10.244.0.2:8080/UDP true")
	ct.Change(c, api.Pods, "a", func(p *corev1.Pod) { p.Labels = map[string]string{"app": "other"} })
	until(c, "web")
	ct.Change(c, api.Pods, "a", func(p *corev1.Pod) { p.Labels = svc.Spec.Selector })
	until(c, "web", "10.244.0.2:8080/TCP true", "10.244.0.2:8080/UDP true")
	// While it is away, the pod's label changes; another one comes.
	kill()
	ct.Change(c, api.Pods, "a", func(p *corev1.Pod) { p.Labels = map[string]string{"app": "other"} })
	ct.Change(c, api.Pods, "other", func(p *corev1.Pod) { p.Labels = svc.Spec.Selector })
	start(c)
	until(c, "web", "10.244.0.9:8080/TCP true", "10.244.0.9:8080/UDP true")
	ct.Change(c, api.Services, "web", func(s *corev1.Service) { s.Spec.Selector = map[string]string{"app": "none"} })
	until(c, "web")
	if _, err := c.Admin().Delete(c.Context(), client.KeyOf(svc), nil); err != nil {
		t.Fatal(err)
	}
	ct.Until(c, "no Endpoints", api.Endpoints, func(all []*corev1.Endpoints) bool { return len(all) == 0 })
}

// A Service that was deleted without its slices, and made again, has no endpoint of before; one that is being deleted loses
// those that go.
func TestSlicesOfBefore(t *testing.T) {
	c := ct.New(t)
	old := &discoveryv1.EndpointSlice{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web-old",
		Labels: map[string]string{discoveryv1.LabelServiceName: "web", discoveryv1.LabelManagedBy: sliceKeeper}},
		AddressType: discoveryv1.AddressTypeIPv4, Endpoints: []discoveryv1.Endpoint{{Addresses: []string{"10.244.0.99"}, Conditions: discoveryv1.EndpointConditions{Ready: new(true)}}},
		Ports: []discoveryv1.EndpointPort{{Port: new(int32(80)), Protocol: new(corev1.ProtocolTCP)}}}
	ct.Create(c, old)
	start(c)
	svc := web(nil)
	svc.UID, svc.Spec.ClusterIP, svc.Spec.ClusterIPs = "", "", nil
	svc.Finalizers = []string{"example.com/wait"}
	svc = ct.Create(c, svc)
	ct.Create(c, runningPod("a", svc.Spec.Selector))
	setStatus(c, "a", "10.244.0.2", corev1.ConditionTrue)
	until(c, "web", "10.244.0.2:8080/TCP true")
	if _, err := c.Admin().Delete(c.Context(), client.KeyOf(svc), nil); err != nil {
		t.Fatal(err)
	}
	ct.Change(c, api.Pods, "a", func(p *corev1.Pod) { p.Labels = map[string]string{"app": "other"} })
	until(c, "web")
}

// As upstream's conformance test "should mirror a custom Endpoint with multiple subsets and same IP address", and what
// "should test the lifecycle of an Endpoint" relies on: Endpoints without a Service stay as they are.
func TestMirrors(t *testing.T) {
	c := ct.New(t)
	start(c)
	alone := ct.Create(c, &corev1.Endpoints{ObjectMeta: metav1.ObjectMeta{Name: "alone"}, Subsets: []corev1.EndpointSubset{
		{Addresses: []corev1.EndpointAddress{{IP: "10.0.0.24"}}, Ports: []corev1.EndpointPort{{Name: "http", Port: 80}}}}})
	svc := web(func(s *corev1.Service) { s.Name, s.Spec.Selector = "custom", nil })
	svc.UID, svc.Spec.ClusterIP, svc.Spec.ClusterIPs = "", "", nil
	ct.Create(c, svc)
	own := ct.Create(c, &corev1.Endpoints{ObjectMeta: metav1.ObjectMeta{Name: "custom", Labels: map[string]string{"a": "b"}}, Subsets: []corev1.EndpointSubset{
		{Addresses: []corev1.EndpointAddress{{IP: "10.1.2.3"}}, Ports: []corev1.EndpointPort{{Name: "p80", Port: 80}}},
		{Addresses: []corev1.EndpointAddress{{IP: "10.1.2.3"}}, Ports: []corev1.EndpointPort{{Name: "p81", Port: 81}}}}})
	until(c, "custom", "10.1.2.3:80/TCP true", "10.1.2.3:81/TCP true")
	all := ct.Until(c, "two slices", api.EndpointSlices, func(all []*discoveryv1.EndpointSlice) bool { return len(all) == 2 })
	for _, s := range all {
		if s.Labels[discoveryv1.LabelManagedBy] != mirrorKeeper || s.Labels["a"] != "b" || !metav1.IsControlledBy(s, own) {
			t.Errorf("%+v", s.ObjectMeta)
		}
	}
	ct.Change(c, api.Endpoints, "custom", func(e *corev1.Endpoints) { e.Subsets = e.Subsets[:1]; e.Subsets[0].Addresses[0].IP = "10.2.3.4" })
	until(c, "custom", "10.2.3.4:80/TCP true")
	ct.Change(c, api.Endpoints, "custom", func(e *corev1.Endpoints) { e.Labels[discoveryv1.LabelSkipMirror] = "true" })
	ct.Until(c, "no slices", api.EndpointSlices, func(all []*discoveryv1.EndpointSlice) bool { return len(all) == 0 })
	obj, err := c.Admin().Get(c.Context(), client.KeyOf(alone))
	if err != nil || obj.GetResourceVersion() != alone.ResourceVersion {
		t.Errorf("Endpoints without a Service: %+v %v", obj, err)
	}
}
