package registry_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"minik8s/internal/api"
	"minik8s/internal/client"
	"minik8s/internal/client/local"
	"minik8s/internal/registry"
	"minik8s/internal/registry/registrytest"
	"minik8s/internal/store/memory"
)

// A port is a pod's as a host port or a Service's as a node port: whoever comes second is refused with its field and the other's name,
// a Service that chooses none gets another, and of many that come at once no two have it. Other protocols, and pods that have ended,
// are in nobody's way.
func TestHostPortsAndNodePorts(t *testing.T) {
	set := serviceSettings
	set.NodePorts.Last = 30004
	reg, stop := registrytest.StartWith(t, memory.New(), set)
	t.Cleanup(stop)
	admin := local.New(reg, registry.System)
	pod := func(name string, port int32, protocol corev1.Protocol) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}, Spec: corev1.PodSpec{Containers: []corev1.Container{
			{Name: "c", Image: "i", Ports: []corev1.ContainerPort{{ContainerPort: 80}, {ContainerPort: 81, HostPort: port, Protocol: protocol}}}}}}
	}
	nodePort := func(port int32) func(*corev1.ServiceSpec) {
		return func(s *corev1.ServiceSpec) { s.Type, s.Ports[0].NodePort = corev1.ServiceTypeNodePort, port }
	}
	create := func(obj api.Object) (api.Object, error) { return admin.Create(t.Context(), obj, client.WriteOptions{}) }
	must := func(obj api.Object) api.Object {
		t.Helper()
		made, err := create(obj)
		if err != nil {
			t.Fatal(err)
		}
		return made
	}
	must(pod("p0", 30000, ""))
	must(service("s1", nodePort(30001)))
	if _, err := create(service("second", nodePort(30000))); !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "spec.ports[0].nodePort") || !strings.Contains(err.Error(), "pod default/p0 has it as a host port") {
		t.Errorf("a node port that is a host port: %v", err)
	}
	if _, err := create(pod("second", 30001, corev1.ProtocolTCP)); !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "spec.containers[0].ports[1].hostPort") || !strings.Contains(err.Error(), "service default/s1 has this port") {
		t.Errorf("a host port that is a node port: %v", err)
	}
	onHost := pod("onhost", 0, "")
	onHost.Spec.HostNetwork, onHost.Spec.Containers[0].Ports = true, []corev1.ContainerPort{{ContainerPort: 30001}}
	if _, err := create(onHost); !apierrors.IsInvalid(err) {
		t.Errorf("a port of a pod on the host's network: %v", err)
	}
	must(pod("udp", 30001, corev1.ProtocolUDP))
	must(pod("elsewhere", 80, ""))
	// 30002 to 30004 are left, for two pods that want the same ones as four Services may get.
	var all sync.WaitGroup
	var mu sync.Mutex
	var pods, services []int32
	for i := range 4 {
		all.Go(func() {
			if made, err := create(service(fmt.Sprint("many", i), nodePort(0))); err == nil {
				mu.Lock()
				services = append(services, made.(*corev1.Service).Spec.Ports[0].NodePort)
				mu.Unlock()
			}
		})
		all.Go(func() {
			if _, err := create(pod(fmt.Sprint("many", i), 30002+int32(i)%3, "")); err == nil {
				mu.Lock()
				pods = append(pods, 30002+int32(i)%3)
				mu.Unlock()
			}
		})
	}
	all.Wait()
	for _, s := range services {
		for _, p := range pods {
			if s == p || s == 30000 {
				t.Errorf("node ports %v, host ports %v", services, pods)
			}
		}
	}
	if len(services)+len(pods) < 3 {
		t.Errorf("node ports %v, host ports %v", services, pods)
	}
	ends := must(pod("ends", 30000, "")).(*corev1.Pod) // of the same port, on another node
	for _, name := range []string{"p0", ends.Name} {
		p, err := client.Get[*corev1.Pod](t.Context(), admin, client.Key{Kind: api.Pods, Namespace: "default", Name: name})
		if err != nil {
			t.Fatal(err)
		}
		p = p.DeepCopy()
		p.Status.Phase = corev1.PodSucceeded
		if _, err := admin.Update(t.Context(), p, client.WriteOptions{Subresource: "status"}); err != nil {
			t.Fatal(err)
		}
	}
	must(service("free", nodePort(30000)))
}
