package registry_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"minik8s/internal/api"
	"minik8s/internal/api/minik8s"
	"minik8s/internal/client"
	"minik8s/internal/client/local"
	"minik8s/internal/registry"
	"minik8s/internal/registry/registrytest"
	"minik8s/internal/store/memory"
)

func serviceCIDR(name string, ranges ...string) *networkingv1.ServiceCIDR {
	return &networkingv1.ServiceCIDR{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: networkingv1.ServiceCIDRSpec{CIDRs: ranges}}
}

func ipAddress(name string) *networkingv1.IPAddress {
	return &networkingv1.IPAddress{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"made": "by-hand"}},
		Spec: networkingv1.IPAddressSpec{ParentRef: &networkingv1.ParentReference{Group: "example.com", Resource: "things", Namespace: "a", Name: "b"}}}
}

// parents are the IPAddresses of a registry, with what has them.
func parents(t *testing.T, reg *registry.Registry, sel labels.Selector) map[string]string {
	t.Helper()
	l, err := reg.List(t.Context(), registrytest.Ask("list", api.IPAddresses, "", "", ""), registry.ListOptions{Labels: sel})
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for _, e := range l.Entries {
		ref := e.Object().(*networkingv1.IPAddress).Spec.ParentRef
		out[e.Object().GetName()] = fmt.Sprintf("%s %s %s/%s", ref.Group, ref.Resource, ref.Namespace, ref.Name)
	}
	return out
}

// Who has an address shows as an IPAddress: it comes, changes and goes with the Service or the DNS object, also after a restart, is
// seen by watches, and cannot be written.
func TestImpliedAddresses(t *testing.T) {
	s := memory.New()
	reg, stop := registrytest.StartWith(t, s, serviceSettings)
	admin := local.New(reg, registry.System)
	before := reg.Revision()
	w, err := reg.Watch(t.Context(), registrytest.Ask("watch", api.IPAddresses, "", "", ""), registry.WatchOptions{Revision: before})
	if err != nil {
		t.Fatal(err)
	}
	next := func(typ api.EventType, name string) {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		events, err := w.Next(ctx)
		if err != nil || len(events) != 1 || events[0].Type != typ || events[0].Entry.Object().GetName() != name {
			t.Fatalf("%+v, %v; want %s %s", events, err, typ, name)
		}
	}
	web, err := admin.Create(t.Context(), service("web", ip("10.6.0.1")), client.WriteOptions{})
	if err != nil {
		t.Fatal(err)
	}
	next(api.Added, "10.6.0.1")
	for _, obj := range []api.Object{service("none", ip("None")),
		&minik8s.DNS{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "d"}, Spec: minik8s.DNSSpec{Host: "d.example", ServiceAddress: "10.8.0.1",
			Paths: []minik8s.DNSPath{{Path: "/", Service: &minik8s.DNSServiceRef{Name: "web", Port: 80}}}}}} {
		if _, err := admin.Create(t.Context(), obj, client.WriteOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	next(api.Added, "10.8.0.1")
	want := map[string]string{"10.6.0.1": " services default/web", "10.8.0.1": "minik8s.io dnses default/d"}
	if got := parents(t, reg, nil); fmt.Sprint(got) != fmt.Sprint(want) {
		t.Fatal(got)
	}
	// A write that leaves the address alone says nothing; the next event is that of the deletion.
	upd := web.DeepCopyObject().(*corev1.Service)
	upd.Labels = map[string]string{"a": "b"}
	if _, err := admin.Update(t.Context(), upd, client.WriteOptions{}); err != nil {
		t.Fatal(err)
	}
	obj, err := admin.Get(t.Context(), client.Key{Kind: api.IPAddresses, Name: "10.6.0.1"})
	if err != nil || obj.GetUID() == "" || obj.GetUID() == web.GetUID() || obj.GetLabels()[networkingv1.LabelIPAddressFamily] != "IPv4" {
		t.Fatalf("%+v, %v", obj, err)
	}
	changed := obj.DeepCopyObject().(api.Object)
	changed.SetAnnotations(map[string]string{"a": "b"})
	if _, err := admin.Update(t.Context(), changed, client.WriteOptions{}); !apierrors.IsForbidden(err) {
		t.Error(err)
	}
	if _, err := admin.Delete(t.Context(), client.Key{Kind: api.IPAddresses, Name: "10.6.0.1"}, nil); !apierrors.IsForbidden(err) {
		t.Error(err)
	}
	if _, err := admin.Create(t.Context(), ipAddress("10.6.0.1"), client.WriteOptions{}); !apierrors.IsAlreadyExists(err) {
		t.Error(err)
	}
	if _, err := admin.Delete(t.Context(), client.Key{Kind: api.Services, Namespace: "default", Name: "web"}, nil); err != nil {
		t.Fatal(err)
	}
	next(api.Deleted, "10.6.0.1")
	if _, err := admin.Create(t.Context(), ipAddress("10.6.0.1"), client.WriteOptions{}); err != nil {
		t.Fatal(err)
	}
	next(api.Added, "10.6.0.1")
	want["10.6.0.1"] = "example.com things a/b"
	stop()
	reg, stop = registrytest.StartWith(t, s, serviceSettings)
	t.Cleanup(stop)
	if got := parents(t, reg, nil); fmt.Sprint(got) != fmt.Sprint(want) {
		t.Fatal("after a restart", got)
	}
	// The store has no history of them, so it is not made up.
	old := registrytest.Ask("watch", api.IPAddresses, "", "", "")
	if _, err := reg.Watch(t.Context(), old, registry.WatchOptions{Revision: before}); !apierrors.IsResourceExpired(err) {
		t.Error(err)
	}
	at := registry.ListOptions{ResourceVersion: fmt.Sprint(before), Match: metav1.ResourceVersionMatchExact}
	if _, err := reg.List(t.Context(), registrytest.Ask("list", api.IPAddresses, "", "", ""), at); !apierrors.IsResourceExpired(err) {
		t.Error(err)
	}
}

// An address that somebody keeps by an IPAddress is no Service's, and is free again when that is deleted. Two that ask for one
// address at once do not both get it.
func TestKeptAddresses(t *testing.T) {
	reg, stop := registrytest.StartWith(t, memory.New(), serviceSettings)
	t.Cleanup(stop)
	admin := local.New(reg, registry.System)
	if _, err := admin.Create(t.Context(), ipAddress("10.6.0.1"), client.WriteOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := admin.Create(t.Context(), service("web", ip("10.6.0.1")), client.WriteOptions{}); !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "ipaddress 10.6.0.1 has it") {
		t.Fatal(err)
	}
	for i := range 252 { // all others than those of the API and the DNS
		if i%2 == 0 {
			if _, err := admin.Create(t.Context(), ipAddress(fmt.Sprintf("10.96.0.%d", i+2)), client.WriteOptions{}); err != nil {
				t.Fatal(err)
			}
		}
	}
	obj, err := admin.Create(t.Context(), service("free", nil), client.WriteOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if a := api.ServiceAddress(obj); a.As4()[3]%2 == 0 {
		t.Errorf("%s is kept", a)
	}
	all := labels.SelectorFromSet(labels.Set{"made": "by-hand"})
	if _, err := reg.DeleteCollection(t.Context(), registrytest.Ask("deletecollection", api.IPAddresses, "", "", ""), registry.ListOptions{Labels: all}, &metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if got := parents(t, reg, nil); len(got) != 1 {
		t.Fatal(got)
	}
	for round := range 50 {
		address := fmt.Sprintf("10.6.1.%d", round+1)
		errs := make(chan error, 2)
		go func() {
			_, err := admin.Create(context.Background(), service(fmt.Sprint("race-", round), ip(address)), client.WriteOptions{})
			errs <- err
		}()
		go func() {
			_, err := admin.Create(context.Background(), ipAddress(address), client.WriteOptions{})
			errs <- err
		}()
		if a, b := <-errs, <-errs; (a == nil) == (b == nil) {
			t.Fatal(address, a, b)
		}
	}
}

// Further ServiceCIDRs have addresses for Services, until they are deleted. They hold until nothing is left of them.
func TestServiceCIDRs(t *testing.T) {
	reg, stop := registrytest.StartWith(t, memory.New(), serviceSettings)
	t.Cleanup(stop)
	admin := local.New(reg, registry.System)
	for _, obj := range []api.Object{node("worker", "10.244.3.0/24"), serviceCIDR(api.DefaultServiceCIDR, "10.96.0.0/24")} {
		if _, err := admin.Create(t.Context(), obj, client.WriteOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	for text, says := range map[string]string{
		"":              "spec.cidrs[0]: Invalid value",
		"10.1.0.1/24":   "spec.cidrs[0]: Invalid value",
		"10.1.0.0/31":   "expected a range from /8 to /30",
		"10.0.0.0/7":    "expected a range from /8 to /30",
		"fd00::/64":     "IPv6 is not configured on this cluster",
		"127.1.0.0/24":  "loopback",
		"224.1.0.0/24":  "multicast",
		"10.244.0.0/24": "in the range of pods",
	} {
		if says == "in the range of pods" {
			says = "overlaps the range of pods' addresses, --cluster-cidr 10.244.0.0/16"
		}
		if _, err := admin.Create(t.Context(), serviceCIDR("bad", text), client.WriteOptions{}); !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), says) {
			t.Errorf("%q: %v; want %s", text, err, says)
		}
	}
	if _, err := admin.Create(t.Context(), serviceCIDR("bad", "10.1.0.0/24", "10.2.0.0/24"), client.WriteOptions{}); !apierrors.IsInvalid(err) {
		t.Error(err)
	}
	for i := range 252 {
		if _, err := admin.Create(t.Context(), service(fmt.Sprint("s", i), nil), client.WriteOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := admin.Create(t.Context(), service("late", nil), client.WriteOptions{}); !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "create a ServiceCIDR with another range") {
		t.Fatal(err)
	}
	made, err := admin.Create(t.Context(), serviceCIDR("more", "10.97.0.0/30"), client.WriteOptions{})
	if err != nil || !slices.Contains(made.GetFinalizers(), api.ServiceCIDRFinalizer) {
		t.Fatal(made, err)
	}
	given := map[string]bool{}
	for i := range 2 {
		obj, err := admin.Create(t.Context(), service(fmt.Sprint("more", i), nil), client.WriteOptions{})
		if err != nil {
			t.Fatal(err)
		}
		given[api.ServiceAddress(obj).String()] = true
	}
	if !given["10.97.0.1"] || !given["10.97.0.2"] {
		t.Fatal(given)
	}
	if _, err := admin.Create(t.Context(), service("edge", ip("10.97.0.3")), client.WriteOptions{}); err == nil || !strings.Contains(err.Error(), "the last address of the ServiceCIDR 10.97.0.0/30 are nobody's") {
		t.Error(err)
	}
	if _, err := admin.Create(t.Context(), node("late", "10.97.0.0/24"), client.WriteOptions{}); err == nil {
		t.Error("pods and Services share a range")
	}
	upd := made.DeepCopyObject().(*networkingv1.ServiceCIDR)
	upd.Spec.CIDRs = []string{"10.98.0.0/24"}
	if _, err := admin.Update(t.Context(), upd, client.WriteOptions{}); !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "spec.cidrs") {
		t.Error(err)
	}
	if _, err := admin.Delete(t.Context(), client.Key{Kind: api.ServiceCIDRs, Name: "more"}, nil); err != nil {
		t.Fatal(err)
	}
	obj, err := admin.Get(t.Context(), client.Key{Kind: api.ServiceCIDRs, Name: "more"})
	if err != nil || obj.GetDeletionTimestamp() == nil {
		t.Fatal(obj, err)
	}
	if _, err := admin.Delete(t.Context(), client.Key{Kind: api.Services, Namespace: "default", Name: "more0"}, nil); err != nil {
		t.Fatal(err)
	}
	if _, err := admin.Create(t.Context(), service("late", nil), client.WriteOptions{}); !apierrors.IsInvalid(err) {
		t.Error("a range that is being deleted gives addresses", err)
	}
	if _, err := admin.Delete(t.Context(), client.Key{Kind: api.ServiceCIDRs, Name: api.DefaultServiceCIDR}, nil); !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "--service-cidr") {
		t.Error(err)
	}
}
