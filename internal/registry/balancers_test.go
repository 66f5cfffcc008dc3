package registry_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"minik8s/config"
	"minik8s/internal/api"
	"minik8s/internal/client"
	"minik8s/internal/client/local"
	"minik8s/internal/registry"
	"minik8s/internal/registry/registrytest"
	"minik8s/internal/store/memory"
)

func balancer(asked string) func(*corev1.ServiceSpec) {
	return func(s *corev1.ServiceSpec) {
		s.Type, s.LoadBalancerIP = corev1.ServiceTypeLoadBalancer, asked //nolint:staticcheck // it is what people know
	}
}

func balancedAt(obj api.Object) string {
	in := obj.(*corev1.Service).Status.LoadBalancer.Ingress
	if len(in) != 1 {
		return fmt.Sprint(len(in), " addresses")
	}
	return in[0].IP
}

// Load balancers get addresses of the pool, each one's own, with the write that stores them, also when many come at once and after a
// restart; one that is asked for is given or refused; without a free one they have none, until one is given back.
func TestBalancerAddresses(t *testing.T) {
	set, kept := serviceSettings, memory.New()
	var err error
	if set.LBPool, err = config.ParseAddressPool("192.168.7.10-192.168.7.14"); err != nil {
		t.Fatal(err)
	}
	reg, stop := registrytest.StartWith(t, kept, set)
	admin := local.New(reg, registry.System)
	n := node("worker", "10.244.3.0/24")
	n.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: "192.168.7.13"}} // who chose the pool has not looked
	if _, err := admin.Create(t.Context(), n, client.WriteOptions{}); err != nil {
		t.Fatal(err)
	}
	create := func(name string, change func(*corev1.ServiceSpec)) (string, error) {
		obj, err := admin.Create(t.Context(), service(name, change), client.WriteOptions{})
		if err != nil {
			return "", err
		}
		return balancedAt(obj), nil
	}
	if got, err := create("asked", balancer("192.168.7.12")); got != "192.168.7.12" {
		t.Fatal(got, err)
	}
	if _, err := create("virtual", ip("192.168.7.11")); err != nil { // any free address may be a cluster IP
		t.Fatal(err)
	}
	for asked, says := range map[string]string{"192.168.7.12": "service default/asked has it", "192.168.7.9": "it is not in --lb-pool, 192.168.7.10-192.168.7.14",
		"192.168.7.11": "service default/virtual has it", "192.168.7.13": "node worker has it"} {
		if _, err := create("refused", balancer(asked)); !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "spec.loadBalancerIP") || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v", asked, err)
		}
	}
	if _, err := create("cluster", ip("192.168.7.12")); err == nil || !strings.Contains(err.Error(), "service default/asked has it") {
		t.Errorf("a cluster IP that is a load balancer's: %v", err)
	}
	if got, err := create("foreign", func(s *corev1.ServiceSpec) { balancer("")(s); s.LoadBalancerClass = new("example.com/other") }); got != "0 addresses" {
		t.Error(got, err)
	}
	// Two are left, for four at once.
	var all sync.WaitGroup
	var mu sync.Mutex
	given := map[string]int{}
	for i := range 4 {
		all.Go(func() {
			got, err := create(fmt.Sprint("s", i), balancer(""))
			mu.Lock()
			defer mu.Unlock()
			if given[got]++; err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if len(given) != 3 || given["192.168.7.10"] != 1 || given["192.168.7.14"] != 1 || given["0 addresses"] != 2 {
		t.Fatal(given)
	}
	stop()
	reg, stop = registrytest.StartWith(t, kept, set)
	defer stop()
	admin = local.New(reg, registry.System)
	key := client.Key{Kind: api.Services, Namespace: "default", Name: "asked"}
	svc, err := client.Get[*corev1.Service](t.Context(), admin, key)
	if err != nil || balancedAt(svc) != "192.168.7.12" {
		t.Fatal(svc, err)
	}
	upd := svc.DeepCopy()
	upd.Spec.Ports[0].Port = 81
	obj, err := admin.Update(t.Context(), upd, client.WriteOptions{})
	if err != nil || balancedAt(obj) != "192.168.7.12" {
		t.Fatal(obj, err)
	}
	// One that is none any more gives it back, to one that waits and is written again.
	upd = obj.DeepCopyObject().(*corev1.Service)
	upd.Spec.Type, upd.Spec.LoadBalancerIP = corev1.ServiceTypeClusterIP, "" //nolint:staticcheck // as above
	if obj, err = admin.Update(t.Context(), upd, client.WriteOptions{}); err != nil || balancedAt(obj) != "0 addresses" {
		t.Fatal(obj, err)
	}
	for i := range 4 {
		key.Name = fmt.Sprint("s", i)
		if svc, err = client.Get[*corev1.Service](t.Context(), admin, key); err != nil || balancedAt(svc) != "0 addresses" {
			continue
		}
		if obj, err = admin.Update(t.Context(), svc.DeepCopy(), client.WriteOptions{}); err != nil || balancedAt(obj) != "192.168.7.12" {
			t.Error(balancedAt(obj), err)
		}
		break
	}
}
