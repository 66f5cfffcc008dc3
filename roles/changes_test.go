package roles_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"minik8s/internal/api"
	"minik8s/internal/client"
)

// answeredBy is by how many pods an address answers, of which every client would have its turn in so many calls.
func answeredBy(address string) int {
	seen := map[string]bool{}
	for range 12 {
		if who := answer(address); who != "" {
			seen[who] = true
		}
	}
	return len(seen)
}

// answerByUDP is what a UDP server says; empty if it says nothing.
func answerByUDP(address string) string {
	c, err := net.Dial("udp", address)
	if err != nil {
		return ""
	}
	defer c.Close() //nolint:errcheck // nothing is lost by it
	if err := c.SetDeadline(time.Now().Add(2 * time.Second)); err != nil {
		return ""
	}
	b := make([]byte, 100)
	if _, err := io.WriteString(c, "hello"); err != nil {
		return ""
	}
	n, err := c.Read(b)
	if err != nil {
		return ""
	}
	return string(b[:n])
}

// cnameOf is what a name of the cluster is another name for; empty: it is none.
func cnameOf(t *testing.T, name string) string {
	t.Helper()
	r := &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, network, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, network, "10.96.0.10:53")
	}}
	got, err := r.LookupCNAME(t.Context(), name)
	if err != nil || got == name {
		return ""
	}
	return got
}

// A Service is changed from each type to the others, with affinity and without; it has TCP and UDP on one port, and endpoints from
// several slices that people have made. What it was before is gone.
func TestServicesChange(t *testing.T) {
	needRoot(t)
	p := newProcess(t)
	c := p.up()
	labels := map[string]string{"app": "web"}
	for _, name := range []string{"one", "two"} {
		pod := shell(name, "")
		pod.Labels = labels
		pod.Spec.Containers[0] = corev1.Container{Name: "web", Image: "minik8s/hello", ImagePullPolicy: corev1.PullIfNotPresent}
		p.create(c, pod)
	}
	one, two := p.running(c, "one"), p.running(c, "two")
	meta := func(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: "default", Name: name} }
	const name, real = "s.default.svc.cluster.local.", "real.default.svc.cluster.local"
	p.make(c, &corev1.Service{ObjectMeta: meta("real"), Spec: corev1.ServiceSpec{Selector: labels, Ports: []corev1.ServicePort{{Port: 80}}}})
	p.make(c, &corev1.Service{ObjectMeta: meta("s"), Spec: corev1.ServiceSpec{Type: corev1.ServiceTypeExternalName, ExternalName: real}})
	key := client.Key{Kind: api.Services, Namespace: "default", Name: "s"}
	change := func(f func(*corev1.ServiceSpec)) *corev1.ServiceSpec {
		t.Helper()
		svc, err := client.Get[*corev1.Service](t.Context(), c, key)
		if err != nil {
			t.Fatal(err)
		}
		svc = svc.DeepCopy()
		f(&svc.Spec)
		obj, err := c.Update(t.Context(), svc, client.WriteOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return &obj.(*corev1.Service).Spec
	}
	ports := []corev1.ServicePort{{Name: "http", Port: 80}, {Name: "datagrams", Port: 80, Protocol: corev1.ProtocolUDP}}
	isAlias := func() {
		t.Helper()
		p.eventually("it is another name", func() bool { return cnameOf(t, name) == real+"." })
	}
	serves := func(address string) {
		t.Helper()
		p.eventually(address+" is served by both pods", func() bool { return answeredBy(address) == 2 })
		p.eventually(address+" is served by UDP, too", func() bool { return slices.Contains([]string{"one", "two"}, answerByUDP(address)) })
	}
	node := func(s *corev1.ServiceSpec) string { return fmt.Sprintf("192.0.2.1:%d", s.Ports[0].NodePort) }

	isAlias()
	s := change(func(s *corev1.ServiceSpec) {
		s.Type, s.ExternalName, s.Ports, s.Selector = corev1.ServiceTypeClusterIP, "", ports, labels
	})
	serves(s.ClusterIP + ":80")
	p.eventually("it is a name of its own", func() bool { return cnameOf(t, name) == "" })
	for _, affinity := range []corev1.ServiceAffinity{corev1.ServiceAffinityClientIP, corev1.ServiceAffinityNone} {
		pods := map[corev1.ServiceAffinity]int{corev1.ServiceAffinityClientIP: 1, corev1.ServiceAffinityNone: 2}[affinity]
		patch := client.Patch{Type: types.MergePatchType, Data: fmt.Appendf(nil, `{"spec":{"sessionAffinity":%q}}`, affinity)}
		if _, err := c.Patch(t.Context(), key, patch, client.WriteOptions{}); err != nil {
			t.Fatal(err)
		}
		p.eventually(fmt.Sprint("with affinity ", affinity), func() bool { return answeredBy(s.ClusterIP+":80") == pods })
	}
	cluster := s.ClusterIP
	s = change(func(s *corev1.ServiceSpec) { s.Type, s.ExternalName = corev1.ServiceTypeExternalName, real })
	if s.ClusterIP != "" {
		t.Errorf("an alias has the address %s", s.ClusterIP)
	}
	isAlias()
	p.eventually("the address is nobody's", func() bool { return answer(cluster) == "" })

	s = change(func(s *corev1.ServiceSpec) {
		s.Type, s.ExternalName, s.Ports, s.Selector = corev1.ServiceTypeNodePort, "", ports, labels
	})
	serves(s.ClusterIP + ":80")
	serves(node(s))
	if s.Ports[0].NodePort != s.Ports[1].NodePort {
		t.Errorf("node ports %d and %d of one port", s.Ports[0].NodePort, s.Ports[1].NodePort)
	}
	for affinity, pods := range map[corev1.ServiceAffinity]int{corev1.ServiceAffinityClientIP: 1, corev1.ServiceAffinityNone: 2} {
		s = change(func(s *corev1.ServiceSpec) { s.SessionAffinity = affinity })
		p.eventually(fmt.Sprint("a node port with affinity ", affinity), func() bool { return answeredBy(node(s)) == pods })
	}
	before := node(s)
	change(func(s *corev1.ServiceSpec) { s.Type, s.ExternalName = corev1.ServiceTypeExternalName, real })
	isAlias()
	p.eventually("the port of the node is nobody's", func() bool { return answer(before) == "" })

	// Slices that people make: each has a port of its own, or the same one with another pod.
	p.make(c, &corev1.Service{ObjectMeta: meta("made"), Spec: corev1.ServiceSpec{ClusterIP: "10.96.7.8",
		Ports: []corev1.ServicePort{{Name: "a", Port: 80, TargetPort: intstr.FromInt32(1)}, {Name: "b", Port: 81, TargetPort: intstr.FromInt32(2)}}}})
	slice := func(n int, port string, number int32, pods ...*corev1.Pod) {
		out := &discoveryv1.EndpointSlice{ObjectMeta: meta(fmt.Sprint("made-", n)), AddressType: discoveryv1.AddressTypeIPv4,
			Ports: []discoveryv1.EndpointPort{{Name: &port, Port: &number, Protocol: new(corev1.ProtocolTCP)}}}
		out.Labels = map[string]string{discoveryv1.LabelServiceName: "made"}
		for _, pod := range pods {
			out.Endpoints = append(out.Endpoints, discoveryv1.Endpoint{Addresses: []string{pod.Status.PodIP}})
		}
		p.make(c, out)
	}
	slice(1, "a", 80, one)
	slice(2, "b", 8090, one, two)
	p.eventually("one port, one pod", func() bool { return answeredBy("10.96.7.8:80") == 1 && answeredBy("10.96.7.8:81") == 2 })
	slice(3, "a", 80, two)
	p.eventually("two slices of one port", func() bool { return answeredBy("10.96.7.8:80") == 2 })
	resp, err := (&http.Client{Timeout: 5 * time.Second}).Get("http://10.96.7.8:82/")
	if err == nil {
		resp.Body.Close() //nolint:errcheck // it is a failure
		t.Error("a port that it does not have answers")
	}
}

// A pod's files say its own name in the cluster, and the servers that it asks for.
func TestNamesInPods(t *testing.T) {
	needRoot(t)
	p := newProcess(t)
	c := p.up()
	p.make(c, &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "direct"},
		Spec: corev1.ServiceSpec{ClusterIP: corev1.ClusterIPNone, Selector: map[string]string{"app": "web"}}})
	named := shell("named", forever)
	named.Labels, named.Spec.Hostname, named.Spec.Subdomain = map[string]string{"app": "web"}, "one", "direct"
	own := shell("own", forever)
	own.Spec.DNSPolicy, own.Spec.DNSConfig = corev1.DNSNone, &corev1.PodDNSConfig{Nameservers: []string{"203.0.113.53"}, Searches: []string{"resolv.example"},
		Options: []corev1.PodDNSConfigOption{{Name: "ndots", Value: new("2")}}}
	p.create(c, named)
	p.create(c, own)
	ip := p.running(c, "named").Status.PodIP
	p.running(c, "own")
	says := func(pod, command string, want ...string) {
		t.Helper()
		out, err := p.command("ctl", "exec", pod, "--", "sh", "-c", command)
		fields := strings.Fields(out)
		for _, w := range want {
			if !slices.Contains(fields, w) {
				t.Errorf("in %s, %s says %q, %v; want %s", pod, command, out, err, w)
			}
		}
	}
	says("named", "hostname; hostname -f; cat /etc/hosts", "one", "one.direct.default.svc.cluster.local", ip)
	says("named", "cat /etc/resolv.conf", "10.96.0.10", "default.svc.cluster.local", "svc.cluster.local", "cluster.local", "ndots:5")
	says("own", "cat /etc/resolv.conf", "203.0.113.53", "resolv.example", "ndots:2")
	out, err := p.command("ctl", "exec", "own", "--", "cat", "/etc/resolv.conf")
	if err != nil || strings.Contains(out, "10.96.0.10") {
		t.Errorf("the pod with servers of its own has %q, %v", out, err)
	}
}
