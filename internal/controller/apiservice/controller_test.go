package apiservice

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"

	"minik8s/internal/api"
	"minik8s/internal/client"
	ct "minik8s/internal/controller/controllertest"
)

func service(typ corev1.ServiceType, ports ...corev1.ServicePort) *corev1.Service {
	return &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "tides"}, Spec: corev1.ServiceSpec{Type: typ, Ports: ports}}
}

func slice(port string, ready bool) *discoveryv1.EndpointSlice {
	return &discoveryv1.EndpointSlice{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "tides-1", Labels: map[string]string{discoveryv1.LabelServiceName: "tides"}},
		AddressType: discoveryv1.AddressTypeIPv4, Ports: []discoveryv1.EndpointPort{{Name: &port, Port: new(int32(8443)), Protocol: new(corev1.ProtocolTCP)}},
		Endpoints: []discoveryv1.Endpoint{{Addresses: []string{"10.244.0.9"}, Conditions: discoveryv1.EndpointConditions{Ready: &ready}}}}
}

func remote() *apiregistrationv1.APIService {
	a := api.LocalAPIService(schema.GroupVersion{Group: "tides.example.org", Version: "v1"})
	a.Labels = nil
	a.Spec.Service = &apiregistrationv1.ServiceReference{Namespace: "default", Name: "tides", Port: new(int32(443))}
	a.Spec.InsecureSkipTLSVerify = true
	return a
}

func TestJudge(t *testing.T) {
	https := corev1.ServicePort{Name: "https", Port: 443}
	ours := api.LocalAPIService(schema.GroupVersion{Group: "apps", Version: "v1"})
	for name, x := range map[string]struct {
		a            *apiregistrationv1.APIService
		svc          *corev1.Service
		list         []*discoveryv1.EndpointSlice
		reason, says string // empty: it is asked
	}{
		"local":               {ours, nil, nil, "Local", "Local APIServices are always available"},
		"no Service":          {remote(), nil, nil, "ServiceNotFound", `service/tides in "default" is not present`},
		"no port":             {remote(), service("ClusterIP", corev1.ServicePort{Port: 80}), nil, "ServicePortError", `service/tides in "default" is not listening on port 443`},
		"no slices":           {remote(), service("ClusterIP", https), nil, "EndpointsNotFound", `cannot find endpointslices for service/tides in "default"`},
		"nobody ready":        {remote(), service("ClusterIP", https), []*discoveryv1.EndpointSlice{slice("https", false)}, "MissingEndpoints", `endpointslices for service/tides in "default" have no addresses with port name "https"`},
		"another port":        {remote(), service("ClusterIP", https), []*discoveryv1.EndpointSlice{slice("http", true)}, "MissingEndpoints", "no addresses"},
		"one of two":          {remote(), service("ClusterIP", https), []*discoveryv1.EndpointSlice{slice("https", false), slice("https", true)}, "", ""},
		"of another type":     {remote(), service("NodePort"), nil, "", ""},
		"a port with no name": {remote(), service("ClusterIP", corev1.ServicePort{Port: 443}), []*discoveryv1.EndpointSlice{slice("", true)}, "", ""},
	} {
		v, ask := judge(x.a, x.svc, x.list)
		if ask != (x.reason == "") || v.reason != x.reason || !strings.Contains(v.message, x.says) || !ask && (v.status == apiregistrationv1.ConditionTrue) != (x.reason == "Local") {
			t.Errorf("%s: %+v, ask %v", name, v, ask)
		}
	}
}

// world is what is served, and how the Service answers.
type world struct {
	mu      sync.Mutex
	list    []schema.GroupVersion
	changed chan struct{}
	fails   error
	asked   int
	hangs   func(name string) bool // those of which the Service never answers
}

func (w *world) serve(list ...schema.GroupVersion) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.list = list
	close(w.changed)
	w.changed = make(chan struct{})
}

func (w *world) served() ([]schema.GroupVersion, <-chan struct{}) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.list, w.changed
}

func (w *world) answer(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.fails = err
}

func (w *world) ask(ctx context.Context, a *apiregistrationv1.APIService) error {
	if w.hangs != nil && w.hangs(a.Name) {
		<-ctx.Done()
		return ctx.Err()
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.asked++
	return w.fails
}

func (w *world) asks() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.asked
}

func start(t *testing.T, w *world) *ct.Cluster {
	c := ct.New(t)
	c.Start(New(c.As("apiservice-controller"), c.Views(), Config{Served: w.served, Ask: w.ask, Again: 10 * time.Millisecond}, slog.New(slog.DiscardHandler)).Run)
	return c
}

// has waits until an APIService has a reason, and no APIService has another name than these.
func has(c *ct.Cluster, reason string, names ...string) {
	ct.Until(c, reason, api.APIServices, func(all []*apiregistrationv1.APIService) bool {
		if len(all) != len(names) {
			return false
		}
		all = slices.SortedFunc(slices.Values(all), func(a, b *apiregistrationv1.APIService) int { return strings.Compare(a.Name, b.Name) })
		for i, a := range all {
			if len(a.Status.Conditions) != 1 || a.Name != names[i] {
				return false
			}
		}
		return len(names) == 0 || all[len(all)-1].Status.Conditions[0].Reason == reason
	})
}

func remove(c *ct.Cluster, name string) {
	if _, err := c.Admin().Delete(c.Context(), client.Key{Kind: api.APIServices, Name: name}, nil); err != nil {
		panic(err)
	}
}

// What is served has an APIService, made again when it is deleted; what is served no more has none. What somebody made
// stays.
func TestServedVersionsHaveAPIServices(t *testing.T) {
	apps, batch := schema.GroupVersion{Group: "apps", Version: "v1"}, schema.GroupVersion{Group: "batch", Version: "v1"}
	w := &world{list: []schema.GroupVersion{apps, batch}, changed: make(chan struct{})}
	c := start(t, w)
	has(c, "Local", "v1.apps", "v1.batch")
	remove(c, "v1.apps")
	has(c, "Local", "v1.apps", "v1.batch")
	mine := api.LocalAPIService(schema.GroupVersion{Group: "zoo", Version: "v1"})
	mine.Labels = nil
	ct.Create(c, mine)
	w.serve(apps)
	has(c, "Local", "v1.apps", "v1.zoo")
	w.serve(apps, schema.GroupVersion{Group: "moon", Version: "v1"})
	has(c, "Local", "v1.apps", "v1.moon", "v1.zoo")
}

// The condition follows the Service, its endpoints and its answers; the Service is asked again and again, and no more
// when there is no such APIService.
func TestAvailability(t *testing.T) {
	w := &world{changed: make(chan struct{})}
	c := start(t, w)
	ct.Create(c, remote())
	has(c, "ServiceNotFound", "v1.tides.example.org")
	ct.Create(c, service("ClusterIP", corev1.ServicePort{Name: "https", Port: 443}))
	has(c, "EndpointsNotFound", "v1.tides.example.org")
	if w.asks() != 0 {
		t.Error("asked without endpoints")
	}
	ct.Create(c, slice("https", true))
	has(c, "Passed", "v1.tides.example.org")
	w.answer(errors.New("the harbour is closed"))
	has(c, "FailedDiscoveryCheck", "v1.tides.example.org")
	w.answer(nil)
	has(c, "Passed", "v1.tides.example.org")
	remove(c, "v1.tides.example.org")
	has(c, "")
}

// However many Services do not answer, the others are judged beside them, and so is what is served here.
func TestSilentServices(t *testing.T) {
	w := &world{changed: make(chan struct{}), hangs: func(name string) bool { return strings.HasPrefix(name, "v1.silent") }}
	c := start(t, w)
	ct.Create(c, service("ClusterIP", corev1.ServicePort{Name: "https", Port: 443}))
	ct.Create(c, slice("https", true))
	for i := range 3 * workers {
		a := remote()
		a.Spec.Group = fmt.Sprint("silent", i)
		a.Name = "v1." + a.Spec.Group
		ct.Create(c, a)
	}
	ct.Create(c, remote())
	w.serve(schema.GroupVersion{Group: "apps", Version: "v1"})
	ct.Until(c, "those that answer", api.APIServices, func(all []*apiregistrationv1.APIService) bool {
		said := map[string]string{}
		for _, a := range all {
			for _, x := range a.Status.Conditions {
				said[a.Name] = x.Reason
			}
		}
		return said["v1.apps"] == "Local" && said["v1.tides.example.org"] == "Passed"
	})
}
