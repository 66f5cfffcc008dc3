package dnsobject

import (
	"fmt"
	"log/slog"
	"net/netip"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"minik8s/internal/api"
	"minik8s/internal/api/minik8s"
	ct "minik8s/internal/controller/controllertest"
	"minik8s/internal/events"
)

func object(paths ...minik8s.DNSPath) *minik8s.DNS {
	return &minik8s.DNS{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "d", Generation: 1}, Spec: minik8s.DNSSpec{Host: "d.example", ServiceAddress: "10.8.0.1", Paths: paths}}
}

func to(path, service string, port int32) minik8s.DNSPath {
	return minik8s.DNSPath{Path: path, Service: &minik8s.DNSServiceRef{Name: service, Port: port}}
}

func service(name string) *corev1.Service {
	return &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}, Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}}}
}

func slice(service string, ready bool) *discoveryv1.EndpointSlice {
	return &discoveryv1.EndpointSlice{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: service + "-1", Labels: map[string]string{discoveryv1.LabelServiceName: service}},
		AddressType: discoveryv1.AddressTypeIPv4, Ports: []discoveryv1.EndpointPort{{Name: new(""), Port: new(int32(8080)), Protocol: new(corev1.ProtocolTCP)}},
		Endpoints: []discoveryv1.Endpoint{{Addresses: []string{"10.244.0.9"}, Conditions: discoveryv1.EndpointConditions{Ready: &ready}}}}
}

type fixed struct{}

func (fixed) service(_, name string) *corev1.Service {
	if name == "gone" {
		return nil
	}
	return service(name)
}

func (fixed) at(a netip.Addr) *corev1.Service {
	switch a.String() {
	case "10.6.0.1":
		return service("web")
	case "10.6.0.2":
		return service("idle")
	}
	return nil
}

func (fixed) ranged(a netip.Addr) bool { return netip.MustParsePrefix("10.6.0.0/16").Contains(a) }

func (fixed) slices(_, service string) []*discoveryv1.EndpointSlice {
	return []*discoveryv1.EndpointSlice{slice(service, service == "web")}
}

func TestDecide(t *testing.T) {
	var many []minik8s.DNSPath
	for i := range 30 {
		many = append(many, to(fmt.Sprint("/", i), "gone", 80))
	}
	for name, c := range map[string]struct {
		paths        []minik8s.DNSPath
		status       metav1.ConditionStatus
		reason, says string
	}{
		"all there":       {[]minik8s.DNSPath{to("/a", "web", 80), {Path: "/b", Address: "http://web"}, {Path: "/c", Address: "http://10.6.0.1"}}, "True", allFound, "/a, /b, /c"},
		"no Service":      {[]minik8s.DNSPath{to("/a", "web", 80), to("/b", "gone", 80)}, "False", "ServiceNotFound", "/b: Service default/gone does not exist"},
		"by its address":  {[]minik8s.DNSPath{{Path: "/a", Address: "http://gone:81"}}, "False", "ServiceNotFound", "/a: Service default/gone does not exist"},
		"outside":         {[]minik8s.DNSPath{{Path: "/a", Address: "http://192.0.2.1"}}, "True", allFound, "/a"},
		"no such address": {[]minik8s.DNSPath{{Path: "/a", Address: "http://10.6.1.1:80"}}, "False", "ServiceNotFound", "/a: no Service has the address 10.6.1.1"},
		"idle, by its IP": {[]minik8s.DNSPath{{Path: "/a", Address: "http://10.6.0.2"}}, "False", "NoEndpoints", "/a: Service default/idle has no endpoint that is ready"},
		"no port":         {[]minik8s.DNSPath{to("/a", "web", 81)}, "False", "PortNotFound", "/a: Service default/web has no TCP port 81"},
		"no endpoint":     {[]minik8s.DNSPath{to("/a", "idle", 80)}, "False", "NoEndpoints", "/a: Service default/idle has no endpoint that is ready"},
		"the first thing": {[]minik8s.DNSPath{to("/a", "idle", 80), to("/b", "gone", 80)}, "False", "ServiceNotFound", "ready; /b: "},
		"too many":        {many, "False", "ServiceNotFound", "and 10 more"},
	} {
		if got := decide(object(c.paths...), fixed{}); got.Status != c.status || got.Reason != c.reason || !strings.Contains(got.Message, c.says) || got.ObservedGeneration != 1 {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// The condition follows Services, their endpoints and the object; Events tell of it, each once.
func TestFollows(t *testing.T) {
	c := ct.New(t)
	part := c.As("dns-controller")
	record := events.New(part, "dns-controller", "", nil)
	go record.Run(c.Context())
	c.Start(New(part, c.Views(), record, slog.New(slog.DiscardHandler)).Run)
	until := func(generation int64, reason string) *minik8s.DNS {
		t.Helper()
		return ct.Until(c, reason, api.DNSes, func(all []*minik8s.DNS) bool {
			return len(all) == 1 && len(all[0].Status.Conditions) == 1 && all[0].Status.Conditions[0].Reason == reason && all[0].Status.Conditions[0].ObservedGeneration == generation
		})[0]
	}
	ct.Create(c, object(to("/a", "web", 80)))
	until(1, "ServiceNotFound")
	ct.Create(c, service("web"))
	until(1, "NoEndpoints")
	ct.Create(c, slice("web", true))
	whole := until(1, allFound)
	ct.Change(c, api.Services, "web", func(s *corev1.Service) { s.Labels = map[string]string{"x": "y"} })
	ct.Change(c, api.DNSes, "d", func(d *minik8s.DNS) { d.Spec.Paths[0].Service.Port = 81 })
	if d := until(2, "PortNotFound"); d.Status.Conditions[0].LastTransitionTime.Before(&whole.Status.Conditions[0].LastTransitionTime) {
		t.Error("the time of the condition goes back")
	}
	ct.Change(c, api.DNSes, "d", func(d *minik8s.DNS) { d.Spec.Paths[0].Service.Port = 80 })
	until(3, allFound)
	ct.Until(c, "Events", api.Events, func(all []*corev1.Event) bool {
		var got []string
		for _, e := range all {
			got = append(got, fmt.Sprint(e.Type, " ", e.Reason, " ", e.Count))
		}
		slices.Sort(got)
		return slices.Equal(got, []string{"Normal AllServicesFound 2", "Warning NoEndpoints 1", "Warning PortNotFound 1", "Warning ServiceNotFound 1"})
	})
}

// An address that Services have is followed, too: the seeds' DNS objects name their Services so.
func TestFollowsAddresses(t *testing.T) {
	c := ct.New(t)
	part := c.As("dns-controller")
	c.Start(New(part, c.Views(), events.New(part, "dns-controller", "", nil), slog.New(slog.DiscardHandler)).Run)
	until := func(reason string) {
		t.Helper()
		ct.Until(c, reason, api.DNSes, func(all []*minik8s.DNS) bool {
			return len(all) == 1 && len(all[0].Status.Conditions) == 1 && all[0].Status.Conditions[0].Reason == reason
		})
	}
	svc := service("web")
	svc.Spec.ClusterIP = "10.96.0.77"
	ct.Create(c, &networkingv1.ServiceCIDR{ObjectMeta: metav1.ObjectMeta{Name: "r"}, Spec: networkingv1.ServiceCIDRSpec{CIDRs: []string{"10.96.0.0/24"}}})
	ct.Create(c, object(minik8s.DNSPath{Path: "/a", Address: "http://10.96.0.77:80"}))
	until("ServiceNotFound")
	ct.Create(c, svc)
	until("NoEndpoints")
	ct.Create(c, slice("web", true))
	until(allFound)
}
