package registry_test

import (
	"fmt"
	"net/netip"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"minik8s/internal/api"
	"minik8s/internal/api/minik8s"
	"minik8s/internal/client"
	"minik8s/internal/client/local"
	"minik8s/internal/registry"
	"minik8s/internal/registry/registrytest"
	"minik8s/internal/store"
	"minik8s/internal/store/memory"
)

// dns is a DNS object of a host with one path; an empty address is to be given.
func dns(name, host, address string) *minik8s.DNS {
	return &minik8s.DNS{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name},
		Spec: minik8s.DNSSpec{Host: host, ServiceAddress: address,
			Paths: []minik8s.DNSPath{{Path: "/a", Service: &minik8s.DNSServiceRef{Name: "web", Port: 80}}}}}
}

// A DNS object gets an address as Services do, and nothing has the address or the name of another.
func TestDNSAddressesAndHosts(t *testing.T) {
	settings := serviceSettings
	settings.ClusterDomain = "cluster.local"
	reg, stop := registrytest.StartWith(t, memory.New(), settings)
	t.Cleanup(stop)
	admin := local.New(reg, registry.System)
	n := node("worker", "10.244.3.0/24")
	n.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: "192.168.7.7"}}
	for _, obj := range []api.Object{n, service("web", ip("10.6.0.1")), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "other"}}} {
		if _, err := admin.Create(t.Context(), obj, client.WriteOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	elsewhere := dns("first", "first.example", "")
	elsewhere.Namespace = "other"
	for _, x := range []struct {
		dns  *minik8s.DNS
		says string // a part of the error, or the address
	}{
		{dns("first", "first.example", "10.8.0.1"), "10.8.0.1"},
		{dns("second", "second.example", "10.8.0.1"), "spec.serviceAddress: Invalid value: \"10.8.0.1\": failed to allocate IP 10.8.0.1: dns default/first has it"},
		{dns("web", "second.example", "10.6.0.1"), "service default/web has it"},
		{dns("second", "first.example", "10.8.0.2"), "spec.host: Invalid value: \"first.example\": dns default/first has this name"},
		{elsewhere, "dns default/first has this name"},
		{dns("mine", "kubernetes.default.svc.cluster.local", ""), "the names in --cluster-domain cluster.local are those of Services and pods"},
		{dns("mine", "notcluster.local", "10.8.0.9"), "10.8.0.9"},
		{dns("pods", "second.example", "10.244.3.5"), "in the range of pods' addresses"},
		{dns("node", "second.example", "192.168.7.7"), "node worker has it"},
		{dns("loopback", "second.example", "127.0.0.5"), "expected an address that one machine"},
		{dns("kubernetes", "second.example", "10.96.0.1"), "kept for service default/kubernetes"},
		{dns("six", "second.example", "fd00::5"), "expected an IPv4 address"},
		{dns("nonsense", "second.example", "10.6.0"), "spec.serviceAddress: Invalid value: \"10.6.0\": must be a valid IP address"},
		{dns("given", "given.example", ""), "10.96.0."},
	} {
		obj, err := admin.Create(t.Context(), x.dns, client.WriteOptions{})
		got := fmt.Sprint(err)
		if err == nil {
			got = obj.(*minik8s.DNS).Spec.ServiceAddress
		} else if !apierrors.IsInvalid(err) {
			t.Errorf("%s: %v is not a refusal of a field", x.dns.Name, err)
		}
		if !strings.Contains(got, x.says) {
			t.Errorf("%s: %s; want %s", x.dns.Name, got, x.says)
		}
	}
	// Services do not get the addresses either, nor do Nodes their ranges.
	if _, err := admin.Create(t.Context(), service("taken", ip("10.8.0.1")), client.WriteOptions{}); err == nil || !strings.Contains(err.Error(), "dns default/first has it") {
		t.Error(err)
	}
	given := map[string]bool{}
	for i := range 252 { // 254, without that of the API, that of the DNS, and the one that is given: one too many
		obj, err := admin.Create(t.Context(), service(fmt.Sprint("s", i), nil), client.WriteOptions{})
		if i == 251 {
			if err == nil || !strings.Contains(err.Error(), "has a Service or a DNS object") {
				t.Error(err)
			}
			break
		}
		if err != nil {
			t.Fatal(i, err)
		}
		given[obj.(*corev1.Service).Spec.ClusterIP] = true
	}
	if len(given) != 251 {
		t.Errorf("%d addresses for 251 services", len(given))
	}
}

// Names and addresses can be changed; they are free then, and kept by updates that do not mention them.
func TestDNSChanges(t *testing.T) {
	reg, stop := registrytest.StartWith(t, memory.New(), serviceSettings)
	t.Cleanup(stop)
	admin := local.New(reg, registry.System)
	for _, d := range []*minik8s.DNS{dns("first", "first.example", "10.8.0.1"), dns("second", "second.example", "10.8.0.2")} {
		if _, err := admin.Create(t.Context(), d, client.WriteOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	patch := func(name, body string) (*minik8s.DNS, error) {
		obj, err := admin.Patch(t.Context(), client.Key{Kind: api.DNSes, Namespace: "default", Name: name},
			client.Patch{Type: types.MergePatchType, Data: []byte(body)}, client.WriteOptions{})
		d, _ := obj.(*minik8s.DNS)
		return d, err
	}
	if _, err := patch("second", `{"spec":{"host":"first.example"}}`); !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "dns default/first has this name") {
		t.Error(err)
	}
	if _, err := patch("second", `{"spec":{"serviceAddress":"10.8.0.1"}}`); !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "dns default/first has it") {
		t.Error(err)
	}
	d, err := patch("first", `{"spec":{"host":"new.example","serviceAddress":null}}`)
	if err != nil || d.Spec.ServiceAddress != "10.8.0.1" || d.Generation != 2 {
		t.Fatalf("%+v %v", d, err)
	}
	if _, err = patch("second", `{"spec":{"host":"first.example"}}`); err != nil {
		t.Fatal("the name is not free:", err)
	}
	if d, err = patch("first", `{"spec":{"serviceAddress":"10.8.0.3"}}`); err != nil || d.Spec.ServiceAddress != "10.8.0.3" {
		t.Fatal(d, err)
	}
	if _, err = patch("second", `{"spec":{"serviceAddress":"10.8.0.1"}}`); err != nil {
		t.Fatal("the address is not free:", err)
	}
	if _, err := admin.Delete(t.Context(), client.Key{Kind: api.DNSes, Namespace: "default", Name: "second"}, nil); err != nil {
		t.Fatal(err)
	}
	if _, err := admin.Create(t.Context(), dns("third", "first.example", "10.8.0.1"), client.WriteOptions{}); err != nil {
		t.Fatal(err)
	}
}

// Of two objects that claim one name, or one address, at the same moment from two masters, one gets it: also if the other is a Service.
func TestDNSTakenMeanwhile(t *testing.T) {
	for _, x := range []struct {
		first api.Object
		says  string
	}{
		{dns("first", "one.example", ""), "dns default/first has this name"},
		{dns("first", "two.example", "10.8.0.1"), "dns default/first has it"},
		{service("first", ip("10.8.0.1")), "service default/first has it"},
	} {
		s := &interrupted{Store: memory.New()}
		admin, other := startOn(t, s), startOn(t, s.Store)
		s.before = func([]store.Change) {
			if _, err := other.Create(t.Context(), x.first, client.WriteOptions{}); err != nil {
				t.Error(err)
			}
		}
		if _, err := admin.Create(t.Context(), dns("second", "one.example", "10.8.0.1"), client.WriteOptions{}); !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), x.says) {
			t.Errorf("%s: %v", x.says, err)
		}
	}
}

// As above, for objects that are there already and have their addresses.
func TestHostTakenMeanwhile(t *testing.T) {
	s := &interrupted{Store: memory.New()}
	admin, other := startOn(t, s), startOn(t, s.Store)
	for _, name := range []string{"first", "second"} {
		if _, err := admin.Create(t.Context(), dns(name, name+".example", ""), client.WriteOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	rename := func(by client.Interface, name string) error {
		_, err := by.Patch(t.Context(), client.Key{Kind: api.DNSes, Namespace: "default", Name: name},
			client.Patch{Type: types.MergePatchType, Data: []byte(`{"spec":{"host":"one.example"}}`)}, client.WriteOptions{})
		return err
	}
	s.before = func([]store.Change) {
		if err := rename(other, "first"); err != nil {
			t.Error(err)
		}
	}
	if err := rename(admin, "second"); !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "dns default/first has this name") {
		t.Error(err)
	}
}

// Three masters make DNS objects and Services at once: no address and no name is given twice.
func TestDNSOnThreeMasters(t *testing.T) {
	s := memory.New()
	const each = 10
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
				if _, err := admin.Create(t.Context(), service(fmt.Sprintf("s%d-%d", m, i), nil), client.WriteOptions{}); err != nil {
					t.Error(err)
				}
				_, err := admin.Create(t.Context(), dns(fmt.Sprintf("d%d-%d", m, i), fmt.Sprintf("h%d.example", i), ""), client.WriteOptions{})
				if err != nil && !strings.Contains(err.Error(), "has this name") { // one of three gets it
					t.Error(err)
				}
			})
		}
	}
	wg.Wait()
	dnses, _, err := client.All[*minik8s.DNS](t.Context(), masters[0], api.DNSes, client.ListOptions{})
	if err != nil || len(dnses) != each {
		t.Fatal(len(dnses), err)
	}
	services, _, err := client.All[*corev1.Service](t.Context(), masters[0], api.Services, client.ListOptions{})
	if err != nil || len(services) != 3*each {
		t.Fatal(len(services), err)
	}
	has := map[string]string{}
	take := func(what, who string) {
		if has[what] != "" {
			t.Errorf("%s has %s, which %s has", who, what, has[what])
		}
		has[what] = who
	}
	for _, d := range dnses {
		take(d.Spec.ServiceAddress, d.Name)
		take(d.Spec.Host, d.Name)
	}
	for _, svc := range services {
		take(svc.Spec.ClusterIP, svc.Name)
	}
}

// A Node does not get a range that has a DNS object's address, and a name is known again after a restart.
func TestDNSAfterRestart(t *testing.T) {
	s, settings := memory.New(), serviceSettings
	settings.PodRange = netip.Prefix{}
	reg, stop := registrytest.StartWith(t, s, settings)
	if _, err := local.New(reg, registry.System).Create(t.Context(), dns("first", "one.example", "10.8.0.1"), client.WriteOptions{}); err != nil {
		t.Fatal(err)
	}
	stop()
	reg, stop = registrytest.StartWith(t, s, settings)
	defer stop()
	admin := local.New(reg, registry.System)
	if _, err := admin.Create(t.Context(), dns("second", "one.example", ""), client.WriteOptions{}); !apierrors.IsInvalid(err) {
		t.Error(err)
	}
	if _, err := admin.Create(t.Context(), node("n", "10.8.0.0/24"), client.WriteOptions{}); err == nil || !strings.Contains(err.Error(), "overlaps 10.8.0.1/32 of dns default/first") {
		t.Error(err)
	}
}
