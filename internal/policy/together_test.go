package policy

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"net/netip"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"minik8s/internal/machine"
	"minik8s/internal/nft"
	"minik8s/internal/proxy"
	proxyplan "minik8s/internal/proxy/plan"
)

// together is a node with both parts that write the one table.
type together struct {
	*host
	services  *source[*corev1.Service]
	slices    *source[*discoveryv1.EndpointSlice]
	stopProxy func()
}

func (s *source[T]) List() []T {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Collect(maps.Values(s.objects))
}

// copied is a source of the same objects, for somebody else.
func (s *source[T]) copied() *source[T] {
	s.mu.Lock()
	defer s.mu.Unlock()
	return &source[T]{objects: maps.Clone(s.objects)}
}

// run runs a part, and returns what ends it. It waits until the part is ready.
func (h *host) run(run func(ctx context.Context, ready func()) error) (stop func()) {
	h.t.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(h.t.Context()))
	ready, ended := make(chan struct{}), make(chan error, 1)
	go func() { ended <- run(ctx, func() { close(ready) }) }()
	select {
	case <-ready:
	case <-time.After(time.Minute):
		h.t.Fatal("a part does not become ready")
	}
	return func() {
		cancel()
		if err := <-ended; err != nil {
			h.t.Error(err)
		}
	}
}

func (w *together) proxyConfig(rules proxy.Ruleset) proxy.Config {
	return proxy.Config{Table: w.table(), Links: w.net.LinkPrefix(), Pods: netip.MustParsePrefix("10.244.0.0/24"), Ruleset: rules, Log: slog.New(slog.DiscardHandler),
		Node: proxyplan.Node{Name: here, Addresses: []netip.Addr{netip.MustParseAddr(machine.Address)}}}
}

func (w *together) startProxy() {
	w.stopProxy = w.run(proxy.New(w.proxyConfig(w.kernel), w.services, w.slices).Run)
}

// inMemory is a table that nobody else changes.
type inMemory struct{ *nft.Fake }

func (inMemory) WatchTable(ctx context.Context, _ string, started, _ func()) error {
	started()
	<-ctx.Done()
	return nil
}

// freshTables are the two parts of the table that daemons would make which start now.
func (w *together) freshTables() (services, policies nft.Table) {
	w.t.Helper()
	a, b := inMemory{nft.NewFake()}, inMemory{nft.NewFake()}
	w.run(proxy.New(w.proxyConfig(a), w.services.copied(), w.slices.copied()).Run)()
	pods, namespaces := w.api.pods.copied(), w.api.namespaces.copied()
	w.run(New(Config{Table: w.table(), Links: w.net.LinkPrefix(), NodeName: here, Ruleset: b, Log: slog.New(slog.DiscardHandler),
		Follow: func() Peers { return Peers{pods, namespaces} }}, w.api.policies.copied()).Run)()
	return a.Tables[w.table()], b.Tables[w.table()]
}

// turns are the endpoints of each Service's port, whatever their order: a start may give it otherwise.
func turns(list []nft.Element) string {
	const turn = 4 // bytes, the last of the key
	by := map[string][]string{}
	for _, e := range list {
		key := string(e.Key[:len(e.Key)-turn])
		by[key] = append(by[key], fmt.Sprintf("%x", e.Value))
	}
	for _, list := range by {
		slices.Sort(list)
	}
	return fmt.Sprintf("%q", by)
}

// differs says where the kernel has something else than daemons would make that start now; empty: nowhere.
func (w *together) differs(services, policies nft.Table) string {
	k := nft.NewKernel()
	services.Sets = slices.Clone(services.Sets)
	for i, set := range services.Sets {
		if !strings.HasSuffix(set.Name, "endpoints") {
			continue
		}
		have, err := k.Elements(services, set.Name)
		if err != nil || turns(have) != turns(set.Elements) {
			return fmt.Sprintf("map %s: %s, want %s: %v", set.Name, turns(have), turns(set.Elements), err)
		}
		services.Sets[i].Elements = have
	}
	services.Guests, policies.Guest = Prefix, Prefix
	for _, t := range []nft.Table{services, policies} {
		t.Name = w.table() // without a policy there is nothing
		if ok, err := k.Equals(t); err != nil || !ok {
			return fmt.Sprintf("want %s: %v", t, err)
		}
	}
	return ""
}

// randomService has odd ports, policies and addresses, of which several Services want the same. It has no session affinity: then
// rules, too, have the order of the endpoints, which is not the objects' alone.
func randomService(r *rand.Rand, n int) *corev1.Service {
	s := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "x", Name: fmt.Sprint("s", n)},
		Spec: corev1.ServiceSpec{Type: corev1.ServiceTypeNodePort, ClusterIP: fmt.Sprintf("10.96.0.%d", n+1)}}
	maybe := func(change func()) {
		if r.IntN(3) == 0 {
			change()
		}
	}
	for i, p := range []corev1.Protocol{corev1.ProtocolTCP, corev1.ProtocolUDP, corev1.ProtocolSCTP} {
		if i == 0 || r.IntN(2) == 0 {
			s.Spec.Ports = append(s.Spec.Ports, corev1.ServicePort{Name: string(p), Protocol: p, Port: 80, TargetPort: intstr.FromInt32(8080), NodePort: int32(30000 + 100*i + n)})
		}
	}
	maybe(func() { s.Spec.InternalTrafficPolicy = new(corev1.ServiceInternalTrafficPolicyLocal) })
	maybe(func() { s.Spec.ExternalTrafficPolicy = corev1.ServiceExternalTrafficPolicyLocal })
	maybe(func() { s.Spec.ExternalIPs = []string{"198.18.0.1"} })
	return s
}

func randomSlice(r *rand.Rand, n int) *discoveryv1.EndpointSlice {
	out := &discoveryv1.EndpointSlice{ObjectMeta: metav1.ObjectMeta{Namespace: "x", Name: fmt.Sprint("s", n, "-1"), Labels: map[string]string{discoveryv1.LabelServiceName: fmt.Sprint("s", n)}}, AddressType: discoveryv1.AddressTypeIPv4}
	for _, p := range []corev1.Protocol{corev1.ProtocolTCP, corev1.ProtocolUDP, corev1.ProtocolSCTP} {
		out.Ports = append(out.Ports, discoveryv1.EndpointPort{Name: new(string(p)), Port: new(int32(8080)), Protocol: new(p)})
	}
	for range r.IntN(6) {
		ready, at := r.IntN(3) > 0, r.IntN(2)
		out.Endpoints = append(out.Endpoints, discoveryv1.Endpoint{Addresses: []string{fmt.Sprintf("10.244.%d.%d", at, r.IntN(12))}, NodeName: new([]string{here, "n2"}[at]),
			Conditions: discoveryv1.EndpointConditions{Ready: &ready, Serving: &ready, Terminating: new(false)}})
	}
	return out
}

// Services, endpoints and policies change together, either part of the daemon ends and starts again, others take rules out of the
// table: in the end the kernel has what daemons would make of the objects that start then.
func TestServicesAndPoliciesTogether(t *testing.T) {
	h := newHost(t)
	w := &together{host: h, services: newSource[*corev1.Service](), slices: newSource[*discoveryv1.EndpointSlice]()}
	h.up()
	w.startProxy()
	t.Cleanup(func() { w.stopProxy() })
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	one := func(list ...string) string { return list[r.IntN(len(list))] }
	change := func() {
		n, ns, name := r.IntN(8), one("x", "y", "z"), one("a", "b", "c", "d")
		service, slice := types.NamespacedName{Namespace: "x", Name: fmt.Sprint("s", n)}, types.NamespacedName{Namespace: "x", Name: fmt.Sprint("s", n, "-1")}
		switch r.IntN(12) {
		case 0, 1:
			w.services.set(service, randomService(r, n), true)
		case 2:
			w.services.set(service, nil, false)
		case 3, 4, 5:
			w.slices.set(slice, randomSlice(r, n), true)
		case 6:
			w.slices.set(slice, nil, false)
		case 7, 8:
			h.api.policy(randomPolicy(r, ns, name))
		case 9:
			h.api.noPolicy(ns, name)
		case 10:
			h.api.pod(ns, name, one(here, "n2"), fmt.Sprintf("10.244.%d.%d", r.IntN(2), r.IntN(12)))
		case 11:
			h.api.noPod(ns, name)
		}
	}

	for round := range 12 {
		for range 30 {
			change()
			switch r.IntN(60) {
			case 0:
				h.down()
				change()
				h.up()
			case 1:
				w.stopProxy()
				change()
				w.startProxy()
			case 2:
				exec.Command("nft", "delete", "chain", "ip", h.table(), one("prerouting", "output", "policy-ingress")).Run() //nolint:errcheck // it may not be there, or be in use
			}
		}
		services, policies := w.freshTables()
		text := ""
		for end := time.Now().Add(20 * time.Second); ; time.Sleep(time.Millisecond) {
			if text = w.differs(services, policies); text == "" {
				break
			}
			if time.Now().After(end) {
				have, _ := exec.Command("nft", "list", "table", "ip", h.table()).CombinedOutput() //nolint:errcheck // it is only shown
				t.Fatalf("round %d: the kernel has something else than a fresh start makes: %s\n%s", round, text, have)
			}
		}
	}
}
