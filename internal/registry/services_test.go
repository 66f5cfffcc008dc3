package registry_test

import (
	"fmt"
	"net/netip"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"minik8s/config"
	"minik8s/internal/api"
	"minik8s/internal/client"
	"minik8s/internal/client/local"
	"minik8s/internal/registry"
	"minik8s/internal/registry/registrytest"
	"minik8s/internal/registry/strategy"
	"minik8s/internal/store"
	"minik8s/internal/store/memory"
)

var serviceSettings = strategy.Settings{PodRange: netip.MustParsePrefix("10.244.0.0/16"),
	ServiceRange: netip.MustParsePrefix("10.96.0.0/24"), NodePorts: config.PortRange{First: 30000, Last: 30099}}

// service is a Service with a port; change, which may be nil, makes it what a test needs.
func service(name string, change func(*corev1.ServiceSpec)) *corev1.Service {
	svc := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name},
		Spec: corev1.ServiceSpec{Selector: map[string]string{"app": "a"}, Ports: []corev1.ServicePort{{Port: 80}}}}
	if change != nil {
		change(&svc.Spec)
	}
	return svc
}

func ip(address string) func(*corev1.ServiceSpec) {
	return func(s *corev1.ServiceSpec) { s.ClusterIP = address }
}

// A Service gets an address of the range, or the one that it asks for if that can be a Service's and is nobody else's.
func TestServiceAddresses(t *testing.T) {
	reg, stop := registrytest.StartWith(t, memory.New(), serviceSettings)
	t.Cleanup(stop)
	admin := local.New(reg, registry.System)
	n := node("worker", "10.244.3.0/24")
	n.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: "192.168.7.7"}}
	for _, obj := range []api.Object{n, node("elsewhere", "10.244.9.0/24"), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: metav1.NamespaceSystem}}} {
		if _, err := admin.Create(t.Context(), obj, client.WriteOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	inSystem := service("kube-dns", ip("10.96.0.10"))
	inSystem.Namespace = metav1.NamespaceSystem
	for _, x := range []struct {
		svc  *corev1.Service
		says string // a part of the error, or the address
	}{
		{service("chosen", ip("10.6.0.1")), "10.6.0.1"},
		{service("second", ip("10.6.0.1")), "service default/chosen has it"},
		{service("pods", ip("10.244.3.5")), "in the range of pods' addresses, --cluster-cidr 10.244.0.0/16"},
		{service("node", ip("192.168.7.7")), "node worker has it"},
		{service("loopback", ip("127.0.0.5")), "expected an address that one machine"},
		{service("linklocal", ip("169.254.3.3")), "expected an address that one machine"},
		{service("multicast", ip("224.0.0.5")), "expected an address that one machine"},
		{service("reserved", ip("240.0.0.5")), "expected an address that one machine"},
		{service("network", ip("10.96.0.0")), "are nobody's"},
		{service("broadcast", ip("10.96.0.255")), "are nobody's"},
		{service("dns", ip("10.96.0.10")), "kept for service kube-system/kube-dns"},
		{inSystem, "10.96.0.10"},
		{service("api", ip("10.96.0.1")), "kept for service default/kubernetes"},
		{service("kubernetes", ip("10.96.0.1")), "10.96.0.1"},
		{service("six", ip("fd00::5")), "IPv6 is not configured on this cluster"},
		{service("nonsense", ip("10.6.0")), "must be a valid IP address"},
		{service("headless", ip("None")), "None"},
	} {
		obj, err := admin.Create(t.Context(), x.svc, client.WriteOptions{})
		got := ""
		if err != nil {
			if got = err.Error(); !apierrors.IsInvalid(err) || !strings.Contains(got, "spec.clusterIPs") {
				t.Errorf("%s: %v is not a refusal of the field", x.svc.Name, err)
			}
		} else {
			got = obj.(*corev1.Service).Spec.ClusterIP
		}
		if !strings.Contains(got, x.says) {
			t.Errorf("%s: %s; want %s", x.svc.Name, got, x.says)
		}
	}
	// All that is left is given, each address once, and then there is an error.
	given := map[string]bool{}
	for i := range 252 { // 254, of which the API and the DNS have one each
		obj, err := admin.Create(t.Context(), service(fmt.Sprint("s", i), nil), client.WriteOptions{})
		if err != nil {
			t.Fatal(i, err)
		}
		address := obj.(*corev1.Service).Spec.ClusterIP
		if a := netip.MustParseAddr(address); given[address] || !serviceSettings.ServiceRange.Contains(a) {
			t.Fatalf("%s is given twice, or is not of the range", address)
		}
		given[address] = true
	}
	if _, err := admin.Create(t.Context(), service("late", nil), client.WriteOptions{}); !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "every address of --service-cidr 10.96.0.0/24 has a Service") {
		t.Fatal(err)
	}
	if _, err := admin.Delete(t.Context(), client.Key{Kind: api.Services, Namespace: "default", Name: "s7"}, nil); err != nil {
		t.Fatal(err)
	}
	if _, err := admin.Create(t.Context(), service("late", nil), client.WriteOptions{}); err != nil {
		t.Fatal(err)
	}
}

// Where pods have no range of their own, a Node does not get one that has a Service's address.
func TestNodeRangeAndServices(t *testing.T) {
	reg, stop := registrytest.StartWith(t, memory.New(), strategy.Settings{})
	t.Cleanup(stop)
	admin := local.New(reg, registry.System)
	if _, err := admin.Create(t.Context(), service("chosen", ip("10.6.0.1")), client.WriteOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := admin.Create(t.Context(), node("n", "10.6.0.0/24"), client.WriteOptions{}); err == nil || !strings.Contains(err.Error(), "overlaps 10.6.0.1/32 of service default/chosen") {
		t.Fatal(err)
	}
}

// Ports of nodes are given once, kept through changes that do not mention them, and free when the type needs none.
func TestNodePorts(t *testing.T) {
	reg, stop := registrytest.StartWith(t, memory.New(), serviceSettings)
	t.Cleanup(stop)
	admin := local.New(reg, registry.System)
	create := func(name string, change func(*corev1.ServiceSpec)) (*corev1.Service, error) {
		obj, err := admin.Create(t.Context(), service(name, func(s *corev1.ServiceSpec) {
			s.Type = corev1.ServiceTypeNodePort
			change(s)
		}), client.WriteOptions{})
		svc, _ := obj.(*corev1.Service)
		return svc, err
	}
	web, err := create("web", func(s *corev1.ServiceSpec) { s.Ports[0].NodePort = 30080 })
	if err != nil || web.Spec.Ports[0].NodePort != 30080 {
		t.Fatal(web, err)
	}
	for port, says := range map[int32]string{
		30080: "provided port is already allocated: service default/web has it",
		29999: "provided port is not in the valid range. The range of valid ports is 30000-30099",
	} {
		if _, err := create("other", func(s *corev1.ServiceSpec) { s.Ports[0].NodePort = port }); !apierrors.IsInvalid(err) ||
			!strings.Contains(err.Error(), "spec.ports[0].nodePort") || !strings.Contains(err.Error(), says) {
			t.Errorf("%d: %v", port, err)
		}
	}
	dns, err := create("dns", func(s *corev1.ServiceSpec) {
		s.Ports = []corev1.ServicePort{{Name: "udp", Port: 53, Protocol: corev1.ProtocolUDP}, {Name: "tcp", Port: 53}, {Name: "web", Port: 80}}
	})
	if p := dns.Spec.Ports; err != nil || p[0].NodePort == 0 || p[0].NodePort != p[1].NodePort || p[2].NodePort == 0 || p[2].NodePort == p[0].NodePort {
		t.Fatalf("%+v %v", dns.Spec.Ports, err)
	}
	update := func(svc *corev1.Service, change func(*corev1.ServiceSpec)) *corev1.Service {
		t.Helper()
		svc = svc.DeepCopy()
		change(&svc.Spec)
		obj, err := admin.Update(t.Context(), svc, client.WriteOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return obj.(*corev1.Service)
	}
	same := update(dns, func(s *corev1.ServiceSpec) {
		s.ClusterIP, s.ClusterIPs = "", nil
		for i := range s.Ports {
			s.Ports[i].NodePort = 0
		}
	})
	if same.Spec.ClusterIP != dns.Spec.ClusterIP || same.Spec.Ports[2] != dns.Spec.Ports[2] || same.Spec.Ports[0] != dns.Spec.Ports[0] {
		t.Errorf("after an update that does not mention them: %+v", same.Spec)
	}
	plain := update(web, func(s *corev1.ServiceSpec) { s.Type = corev1.ServiceTypeClusterIP })
	if plain.Spec.Ports[0].NodePort != 0 || plain.Spec.ExternalTrafficPolicy != "" {
		t.Errorf("as a ClusterIP: %+v", plain.Spec)
	}
	again, err := create("other", func(s *corev1.ServiceSpec) { s.Ports[0].NodePort = 30080 })
	if err != nil {
		t.Fatal("the port is not free:", err)
	}
	balanced := update(again, func(s *corev1.ServiceSpec) {
		s.Type, s.ExternalTrafficPolicy = corev1.ServiceTypeLoadBalancer, corev1.ServiceExternalTrafficPolicyLocal
	})
	if p := balanced.Spec.HealthCheckNodePort; p == 0 || balanced.Spec.Ports[0].NodePort != 30080 || !*balanced.Spec.AllocateLoadBalancerNodePorts {
		t.Errorf("as a LoadBalancer: %+v", balanced.Spec)
	}
	outside := update(balanced, func(s *corev1.ServiceSpec) { s.Type, s.ExternalName = corev1.ServiceTypeExternalName, "example.com" })
	if s := outside.Spec; s.ClusterIP != "" || s.HealthCheckNodePort != 0 || s.Ports[0].NodePort != 0 || s.IPFamilies != nil || s.AllocateLoadBalancerNodePorts != nil {
		t.Errorf("as an ExternalName: %+v", s)
	}
	if back := update(outside, func(s *corev1.ServiceSpec) { s.Type, s.ExternalName = corev1.ServiceTypeClusterIP, "" }); back.Spec.ClusterIP == "" {
		t.Errorf("back: %+v", back.Spec)
	}
	moved := dns.DeepCopy()
	moved.ResourceVersion, moved.Spec.ClusterIP, moved.Spec.ClusterIPs = "", "10.6.0.9", []string{"10.6.0.9"}
	if _, err := admin.Update(t.Context(), moved, client.WriteOptions{}); !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "may not change once set") {
		t.Error(err)
	}
}

// Of two Services that two masters make at the same moment with one address, or one port, one gets it.
func TestServiceTakenMeanwhile(t *testing.T) {
	s := &interrupted{Store: memory.New()}
	admin, other := startOn(t, s), startOn(t, s.Store)
	for i, change := range []func(*corev1.ServiceSpec){
		ip("10.6.0.1"),
		func(s *corev1.ServiceSpec) { s.Type, s.Ports[0].NodePort = corev1.ServiceTypeNodePort, 30080 },
	} {
		create := func(by client.Interface, name string) error {
			_, err := by.Create(t.Context(), service(fmt.Sprint(name, i), change), client.WriteOptions{})
			return err
		}
		s.before = func([]store.Change) {
			if err := create(other, "first"); err != nil {
				t.Error(err)
			}
		}
		if err := create(admin, "second"); !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), fmt.Sprint("service default/first", i, " has it")) {
			t.Errorf("%d: %v", i, err)
		}
	}
}

// As above, for Services that are there already and become reachable on the nodes.
func TestNodePortTakenMeanwhile(t *testing.T) {
	s := &interrupted{Store: memory.New()}
	admin, other := startOn(t, s), startOn(t, s.Store)
	for _, name := range []string{"first", "second"} {
		if _, err := admin.Create(t.Context(), service(name, nil), client.WriteOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	open := func(by client.Interface, name string) error {
		_, err := by.Patch(t.Context(), client.Key{Kind: api.Services, Namespace: "default", Name: name},
			client.Patch{Type: types.MergePatchType, Data: []byte(`{"spec":{"type":"NodePort","ports":[{"port":80,"nodePort":30080}]}}`)}, client.WriteOptions{})
		return err
	}
	s.before = func([]store.Change) {
		if err := open(other, "first"); err != nil {
			t.Error(err)
		}
	}
	if err := open(admin, "second"); !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "service default/first has it") {
		t.Error(err)
	}
}

// Three masters create Services at once: no address and no port is given twice.
func TestServicesOnThreeMasters(t *testing.T) {
	s := memory.New()
	const each = 20
	var masters []client.Interface
	for range 3 {
		reg, stop := registrytest.StartWith(t, s, serviceSettings)
		t.Cleanup(stop)
		masters = append(masters, local.New(reg, registry.System))
	}
	var wg sync.WaitGroup
	for m, admin := range masters {
		for i := range each {
			wg.Go(func() {
				svc := service(fmt.Sprintf("s%d-%d", m, i), func(s *corev1.ServiceSpec) { s.Type = corev1.ServiceTypeNodePort })
				if i == 0 {
					svc.Spec.ClusterIP = "10.6.0.1" // one of three gets it
				}
				_, err := admin.Create(t.Context(), svc, client.WriteOptions{})
				if err != nil && (i > 0 || !strings.Contains(err.Error(), "has it")) {
					t.Error(err)
				}
			})
		}
	}
	wg.Wait()
	all, _, err := client.All[*corev1.Service](t.Context(), masters[0], api.Services, client.ListOptions{})
	if err != nil || len(all) != 3*each-2 {
		t.Fatal(len(all), err)
	}
	addresses, ports := map[string]string{}, map[int32]string{}
	for _, svc := range all {
		address, port := svc.Spec.ClusterIP, svc.Spec.Ports[0].NodePort
		if addresses[address] != "" || ports[port] != "" || port == 0 || address == "" {
			t.Errorf("%s has %s and %d, which %s and %s have", svc.Name, address, port, addresses[address], ports[port])
		}
		addresses[address], ports[port] = svc.Name, svc.Name
	}
}

// An address is known again after a restart.
func TestServiceAddressAfterRestart(t *testing.T) {
	s := memory.New()
	_, stop := registrytest.StartWith(t, s, serviceSettings)
	stop()
	reg, stop := registrytest.StartWith(t, s, serviceSettings)
	if _, err := local.New(reg, registry.System).Create(t.Context(), service("chosen", ip("10.6.0.1")), client.WriteOptions{}); err != nil {
		t.Fatal(err)
	}
	stop()
	reg, stop = registrytest.StartWith(t, s, serviceSettings)
	defer stop()
	if _, err := local.New(reg, registry.System).Create(t.Context(), service("second", ip("10.6.0.1")), client.WriteOptions{}); !apierrors.IsInvalid(err) {
		t.Fatal(err)
	}
}

// As upstream's conformance test "should complete a service status lifecycle", of the part that is the registry's.
func TestServiceStatus(t *testing.T) {
	admin := startOn(t, memory.New())
	obj, err := admin.Create(t.Context(), service("balanced", func(s *corev1.ServiceSpec) { s.Type = corev1.ServiceTypeLoadBalancer }), client.WriteOptions{})
	if err != nil {
		t.Fatal(err)
	}
	patch := func(sub, body string) *corev1.Service {
		t.Helper()
		obj, err := admin.Patch(t.Context(), client.KeyOf(obj), client.Patch{Type: types.MergePatchType, Data: []byte(body)}, client.WriteOptions{Subresource: sub})
		if err != nil {
			t.Fatal(err)
		}
		return obj.(*corev1.Service)
	}
	svc := patch("status", `{"metadata":{"annotations":{"patched":"true"}},"status":{"loadBalancer":{"ingress":[{"ip":"203.0.113.1"}]}}}`)
	if in := svc.Status.LoadBalancer.Ingress; len(in) != 1 || in[0].IP != "203.0.113.1" || *in[0].IPMode != corev1.LoadBalancerIPModeVIP || svc.Annotations["patched"] != "true" {
		t.Errorf("%+v", svc)
	}
	svc = patch("", `{"spec":{"type":"ClusterIP"}}`)
	if len(svc.Status.LoadBalancer.Ingress) > 0 {
		t.Errorf("the status of a load balancer stays: %+v", svc.Status)
	}
	if _, err := admin.Patch(t.Context(), client.KeyOf(obj), client.Patch{Type: types.MergePatchType, Data: []byte(`{"status":{"loadBalancer":{"ingress":[{"ip":"203.0.113.1"}]}}}`)},
		client.WriteOptions{Subresource: "status"}); !apierrors.IsInvalid(err) {
		t.Error(err)
	}
}

// A Service that is no load balancer any more has nothing of what was said of it as one.
func TestNoLoadBalancerAnyMore(t *testing.T) {
	reg, stop := registrytest.StartWith(t, memory.New(), serviceSettings)
	t.Cleanup(stop)
	admin := local.New(reg, registry.System)
	obj, err := admin.Create(t.Context(), service("s", func(s *corev1.ServiceSpec) { s.Type = corev1.ServiceTypeLoadBalancer }), client.WriteOptions{})
	if err != nil {
		t.Fatal(err)
	}
	svc := obj.DeepCopyObject().(*corev1.Service)
	svc.Annotations = map[string]string{api.AnnouncedByAnnotation: "n1", "other": "stays"}
	if obj, err = admin.Update(t.Context(), svc, client.WriteOptions{}); err != nil {
		t.Fatal(err)
	}
	svc = obj.DeepCopyObject().(*corev1.Service)
	other := metav1.Condition{Type: "Other", Status: metav1.ConditionTrue, Reason: "X", LastTransitionTime: metav1.Now()}
	taken := other
	taken.Type = corev1.LoadBalancerPortsError
	svc.Status.Conditions = []metav1.Condition{other, taken}
	if obj, err = admin.Update(t.Context(), svc, client.WriteOptions{Subresource: "status"}); err != nil {
		t.Fatal(err)
	}
	svc = obj.DeepCopyObject().(*corev1.Service)
	svc.Spec.Type = corev1.ServiceTypeClusterIP
	if obj, err = admin.Update(t.Context(), svc, client.WriteOptions{}); err != nil {
		t.Fatal(err)
	}
	svc = obj.(*corev1.Service)
	if len(svc.Status.Conditions) != 1 || svc.Status.Conditions[0].Type != "Other" || len(svc.Annotations) != 1 || svc.Annotations["other"] != "stays" {
		t.Errorf("%+v %+v", svc.Annotations, svc.Status.Conditions)
	}
}

// A load balancer on the machines' addresses does not take the port at which they answer for Ingresses, and who makes the first
// Ingress is told of one that has it.
func TestLoadBalancerAtTheIngresses(t *testing.T) {
	settings := serviceSettings
	settings.MachinePorts = []strategy.MachinePort{{Protocol: corev1.ProtocolTCP, Port: 80, Of: "the Ingresses", While: api.Ingresses}}
	reg, stop := registrytest.StartWith(t, memory.New(), settings)
	t.Cleanup(stop)
	admin := local.New(reg, registry.System)
	balanced := func(s *corev1.ServiceSpec) { s.Type, s.Ports[0].Port = corev1.ServiceTypeLoadBalancer, 80 }
	if _, err := admin.Create(t.Context(), service("first", balanced), client.WriteOptions{}); err != nil {
		t.Fatal("there is no Ingress:", err)
	}
	if _, err := admin.Get(t.Context(), client.Key{Kind: api.Services, Namespace: "default", Name: "first"}); err != nil { // now the cache has it
		t.Fatal(err)
	}
	var told []string
	ingress := &networkingv1.Ingress{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "i"}, Spec: networkingv1.IngressSpec{
		DefaultBackend: &networkingv1.IngressBackend{Service: &networkingv1.IngressServiceBackend{Name: "first", Port: networkingv1.ServiceBackendPort{Number: 80}}}}}
	if _, err := reg.Create(t.Context(), registrytest.Ask("create", api.Ingresses, "default", "i", ""), ingress, registry.WriteOptions{Warn: func(s string) { told = append(told, s) }}); err != nil {
		t.Fatal(err)
	}
	if _, err := admin.Get(t.Context(), client.KeyOf(ingress)); err != nil { // as above
		t.Fatal(err)
	}
	if len(told) != 1 || !strings.Contains(told[0], "default/first has port 80") {
		t.Error(told)
	}
	if _, err := admin.Create(t.Context(), service("second", balanced), client.WriteOptions{}); !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "spec.ports[0].port") || !strings.Contains(err.Error(), "--lb-pool") {
		t.Error(err)
	}
}

// A load balancer cannot have a port that the machines need, whose addresses it has. One of a class has others.
func TestLoadBalancerAtMachinePorts(t *testing.T) {
	settings := serviceSettings
	settings.MachinePorts = []strategy.MachinePort{{Protocol: corev1.ProtocolTCP, Port: 6443, Of: "the API"}}
	reg, stop := registrytest.StartWith(t, memory.New(), settings)
	t.Cleanup(stop)
	admin := local.New(reg, registry.System)
	for _, x := range []struct {
		name   string
		change func(*corev1.ServiceSpec)
		ok     bool
	}{
		{"tcp", func(s *corev1.ServiceSpec) { s.Type, s.Ports[0].Port = corev1.ServiceTypeLoadBalancer, 6443 }, false},
		{"udp", func(s *corev1.ServiceSpec) {
			s.Type, s.Ports[0].Port, s.Ports[0].Protocol = corev1.ServiceTypeLoadBalancer, 6443, corev1.ProtocolUDP
		}, true},
		{"class", func(s *corev1.ServiceSpec) {
			s.Type, s.Ports[0].Port, s.LoadBalancerClass = corev1.ServiceTypeLoadBalancer, 6443, new("example.com/pool")
		}, true},
		{"cluster", func(s *corev1.ServiceSpec) { s.Ports[0].Port = 6443 }, true},
	} {
		_, err := admin.Create(t.Context(), service(x.name, x.change), client.WriteOptions{})
		if x.ok != (err == nil) || err != nil && (!apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "spec.ports[0].port") || !strings.Contains(err.Error(), "the API")) {
			t.Errorf("%s: %v", x.name, err)
		}
	}
	obj, err := admin.Get(t.Context(), client.Key{Kind: api.Services, Namespace: "default", Name: "cluster"})
	if err != nil {
		t.Fatal(err)
	}
	upd := obj.DeepCopyObject().(*corev1.Service)
	upd.Spec.Type = corev1.ServiceTypeLoadBalancer
	if _, err := admin.Update(t.Context(), upd, client.WriteOptions{}); !apierrors.IsInvalid(err) {
		t.Errorf("it becomes one: %v", err)
	}
}
