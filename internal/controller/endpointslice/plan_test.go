package endpointslice

//lint:file-ignore SA1019 Endpoints are served for those who do not know EndpointSlices

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
)

func web(change func(*corev1.Service)) *corev1.Service {
	svc := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web", UID: "web-uid"},
		Spec: corev1.ServiceSpec{Selector: map[string]string{"app": "web"}, ClusterIP: "10.96.0.7", ClusterIPs: []string{"10.96.0.7"},
			Ports: []corev1.ServicePort{{Name: "http", Protocol: corev1.ProtocolTCP, Port: 80, TargetPort: intstr.FromString("http")}}}}
	if change != nil {
		change(svc)
	}
	return svc
}

// pod is a ready pod whose port http is this one.
func pod(i int, port int32) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: fmt.Sprint("p", i), UID: types.UID(fmt.Sprint("uid", i)), Labels: map[string]string{"app": "web"}},
		Spec: corev1.PodSpec{NodeName: "n1", Containers: []corev1.Container{{Name: "c", Ports: []corev1.ContainerPort{{Name: "http", Protocol: corev1.ProtocolTCP, ContainerPort: port}}}}},
		Status: corev1.PodStatus{Phase: corev1.PodRunning, PodIPs: []corev1.PodIP{{IP: fmt.Sprintf("10.244.%d.%d", i/250, i%250+1)}},
			Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}}}
}

func notReady(p *corev1.Pod) *corev1.Pod {
	p.Status.Conditions[0].Status = corev1.ConditionFalse
	return p
}

func going(p *corev1.Pod) *corev1.Pod {
	p.DeletionTimestamp = &metav1.Time{}
	return p
}

func nowhere(string) string { return "" }

// What each state of a pod makes of its endpoint.
func TestConditions(t *testing.T) {
	publish := func(s *corev1.Service) { s.Spec.PublishNotReadyAddresses = true }
	for _, x := range []struct {
		name                        string
		change                      func(*corev1.Service)
		pod                         *corev1.Pod
		ready, serving, terminating bool
		addresses, notReady         int // of the Endpoints
	}{
		{"ready", nil, pod(1, 80), true, true, false, 1, 0},
		{"not ready", nil, notReady(pod(1, 80)), false, false, false, 0, 1},
		{"ready and terminating", nil, going(pod(1, 80)), false, true, true, 0, 0},
		{"terminating", nil, going(notReady(pod(1, 80))), false, false, true, 0, 0},
		{"published though not ready", publish, notReady(pod(1, 80)), true, false, false, 1, 0},
		{"published though terminating", publish, going(notReady(pod(1, 80))), true, false, true, 1, 0},
	} {
		svc := web(x.change)
		g := wanted(svc, []*corev1.Pod{x.pod}, nowhere)
		if len(g) != 1 || len(g[0].endpoints) != 1 {
			t.Fatalf("%s: %+v", x.name, g)
		}
		c := g[0].endpoints[0].Conditions
		if *c.Ready != x.ready || *c.Serving != x.serving || *c.Terminating != x.terminating {
			t.Errorf("%s: %t %t %t", x.name, *c.Ready, *c.Serving, *c.Terminating)
		}
		addresses, not := 0, 0
		for _, s := range endpointsOf(svc, []*corev1.Pod{x.pod}).Subsets {
			addresses, not = addresses+len(s.Addresses), not+len(s.NotReadyAddresses)
		}
		if addresses != x.addresses || not != x.notReady {
			t.Errorf("%s: Endpoints have %d and %d", x.name, addresses, not)
		}
	}
	ended, without := pod(1, 80), pod(2, 80)
	ended.Status.Phase, without.Status.PodIPs = corev1.PodSucceeded, nil
	if g := wanted(web(nil), []*corev1.Pod{ended, without}, nowhere); len(g) != 0 {
		t.Errorf("pods that cannot serve: %+v", g)
	}
}

// What an endpoint says beside its address.
func TestEndpointDetails(t *testing.T) {
	svc := web(func(s *corev1.Service) {
		s.Spec.TrafficDistribution = new(corev1.ServiceTrafficDistributionPreferSameNode)
		s.Spec.Ports = append(s.Spec.Ports, corev1.ServicePort{Name: "dns", Protocol: corev1.ProtocolUDP, Port: 53, TargetPort: intstr.FromInt32(5353)},
			corev1.ServicePort{Name: "none", Protocol: corev1.ProtocolTCP, Port: 99, TargetPort: intstr.FromString("none")})
	})
	p := pod(1, 8080)
	p.Spec.Hostname, p.Spec.Subdomain = "first", "web"
	g := wanted(svc, []*corev1.Pod{p}, func(string) string { return "here" })
	want := discoveryv1.Endpoint{Addresses: []string{"10.244.0.2"}, NodeName: new("n1"), Zone: new("here"), Hostname: new("first"),
		Conditions: discoveryv1.EndpointConditions{Ready: new(true), Serving: new(true), Terminating: new(false)},
		TargetRef:  &corev1.ObjectReference{Kind: "Pod", Namespace: "default", Name: "p1", UID: "uid1"},
		Hints:      &discoveryv1.EndpointHints{ForNodes: []discoveryv1.ForNode{{Name: "n1"}}, ForZones: []discoveryv1.ForZone{{Name: "here"}}}}
	if !apiequality.Semantic.DeepEqual(g[0].endpoints[0], want) {
		t.Errorf("%+v", g[0].endpoints[0])
	}
	ports := map[string]int32{}
	for _, p := range g[0].ports {
		ports[*p.Name+"/"+string(*p.Protocol)] = *p.Port
	}
	if len(ports) != 2 || ports["http/TCP"] != 8080 || ports["dns/UDP"] != 5353 {
		t.Errorf("%v", ports)
	}
}

// cluster is what the API holds, for plans without it.
type cluster struct {
	slices map[string]*discoveryv1.EndpointSlice
	names  int
}

// carryOut does what a plan says and returns how many writes that is.
func (c *cluster) carryOut(p plan) int {
	for _, s := range p.create {
		c.names++
		s.Name = fmt.Sprint("s", c.names)
		c.slices[s.Name] = s
	}
	for _, s := range p.update {
		c.slices[s.Name] = s
	}
	for _, s := range p.remove {
		delete(c.slices, s.Name)
	}
	return len(p.create) + len(p.update) + len(p.remove)
}

func (c *cluster) list() []*discoveryv1.EndpointSlice {
	var out []*discoveryv1.EndpointSlice
	for _, s := range c.slices {
		out = append(out, s)
	}
	return out
}

// check says what is wrong with the slices.
func (c *cluster) check(groups []group) error {
	have := map[string]discoveryv1.Endpoint{}
	for _, s := range c.slices {
		if len(s.Endpoints) > maxEndpoints {
			return fmt.Errorf("%s has %d endpoints", s.Name, len(s.Endpoints))
		}
		for _, e := range s.Endpoints {
			key := portsKey(s.AddressType, s.Ports) + " " + identity(&e)
			if _, twice := have[key]; twice {
				return fmt.Errorf("%s is there twice", key)
			}
			have[key] = e
		}
	}
	n := 0
	for _, g := range groups {
		for _, e := range g.endpoints {
			n++
			if got, ok := have[g.key()+" "+identity(&e)]; !ok || !apiequality.Semantic.DeepEqual(got, e) {
				return fmt.Errorf("%s of %s is %+v, want %+v", identity(&e), g.key(), got, e)
			}
		}
	}
	if n != len(have) {
		return fmt.Errorf("%d endpoints, want %d", len(have), n)
	}
	if n == 0 && len(c.slices) != 1 {
		return fmt.Errorf("%d empty slices, want 1", len(c.slices))
	}
	return nil
}

// After any change of pods the slices name the wanted endpoints and nothing else, none has more than 100, a second look
// writes nothing, and a change of one pod is one write: two if its ports are others, or it was the last in its slice.
func TestPlanProperty(t *testing.T) {
	seed := rand.Uint64()
	rng := rand.New(rand.NewPCG(seed, 0))
	t.Logf("seed %d", seed)
	svc := web(nil)
	c, pods := &cluster{slices: map[string]*discoveryv1.EndpointSlice{}}, map[int]*corev1.Pod{}
	look := func(step int, changed int) {
		t.Helper()
		var list []*corev1.Pod
		for _, p := range pods {
			list = append(list, p)
		}
		groups := wanted(svc, list, nowhere)
		writes := c.carryOut(decide(groups, c.list(), likeService(svc), true))
		if err := c.check(groups); err != nil {
			t.Fatalf("seed %d, step %d: %v", seed, step, err)
		}
		if changed == 1 && writes > 2 {
			t.Fatalf("seed %d, step %d: a change of one pod was %d writes", seed, step, writes)
		}
		if again := decide(groups, c.list(), likeService(svc), true); len(again.create)+len(again.update)+len(again.remove) > 0 {
			t.Fatalf("seed %d, step %d: the second look changes %+v", seed, step, again)
		}
	}
	for step := range 300 {
		n := 1
		if rng.IntN(4) == 0 {
			n = rng.IntN(250)
		}
		for range n {
			i := rng.IntN(400)
			switch rng.IntN(6) {
			case 0, 1, 2:
				pods[i] = pod(i, 8080+int32(rng.IntN(8)/7))
			case 3:
				pods[i] = notReady(pod(i, 8080))
			case 4:
				pods[i] = going(pod(i, 8080))
			default:
				delete(pods, i)
			}
		}
		if rng.IntN(40) == 0 {
			clear(pods)
			n = 400
		}
		look(step, n)
	}
}

// A pod that becomes ready, in a Service of many slices, changes one slice.
func TestOneWrite(t *testing.T) {
	svc := web(nil)
	var pods []*corev1.Pod
	for i := range 1050 {
		pods = append(pods, pod(i, 80))
	}
	notReady(pods[500])
	c := &cluster{slices: map[string]*discoveryv1.EndpointSlice{}}
	if n := c.carryOut(decide(wanted(svc, pods, nowhere), nil, likeService(svc), true)); n != 11 {
		t.Errorf("%d slices for 1050 endpoints", n)
	}
	pods[500] = pod(500, 80)
	if p := decide(wanted(svc, pods, nowhere), c.list(), likeService(svc), true); len(p.update) != 1 || len(p.create)+len(p.remove) != 0 {
		t.Errorf("%d %d %d", len(p.create), len(p.update), len(p.remove))
	}
	e := endpointsOf(svc, pods)
	if e.Annotations[corev1.EndpointsOverCapacity] != truncated || len(e.Subsets[0].Addresses) != maxInEndpoints {
		t.Errorf("%v %d", e.Annotations, len(e.Subsets[0].Addresses))
	}
}

// Endpoints that people write become slices for each set of ports and family.
func TestCopied(t *testing.T) {
	e := &corev1.Endpoints{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "ext"}, Subsets: []corev1.EndpointSubset{
		{Addresses: []corev1.EndpointAddress{{IP: "192.0.2.1"}, {IP: "2001:db8::1"}}, NotReadyAddresses: []corev1.EndpointAddress{{IP: "192.0.2.2"}},
			Ports: []corev1.EndpointPort{{Port: 80, Protocol: corev1.ProtocolTCP}}},
		{Addresses: []corev1.EndpointAddress{{IP: "192.0.2.3"}}, Ports: []corev1.EndpointPort{{Port: 81, Protocol: corev1.ProtocolTCP}}}}}
	var got []string
	for _, g := range copied(e) {
		for _, x := range g.endpoints {
			got = append(got, fmt.Sprint(g.family, " ", *g.ports[0].Port, " ", x.Addresses[0], " ", *x.Conditions.Ready))
		}
	}
	want := []string{"IPv4 80 192.0.2.1 true", "IPv4 80 192.0.2.2 false", "IPv6 80 2001:db8::1 true", "IPv4 81 192.0.2.3 true"}
	if !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
	svc := web(func(s *corev1.Service) { s.Spec.Selector = nil })
	skip := e.DeepCopy()
	skip.Labels = map[string]string{discoveryv1.LabelSkipMirror: "true"}
	if !mirrored(e, svc) || mirrored(skip, svc) || mirrored(e, nil) || mirrored(e, web(nil)) {
		t.Error("which are copied")
	}
}
