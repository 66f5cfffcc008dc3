package ctl

import (
	"encoding/json"
	"net/http"
	"net/netip"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"minik8s/internal/ctl/why/whytest"
	"minik8s/internal/proxy/report"
)

// attempts are what nodes say of tries, by what is tried: POD ADDRESS, or POD NAME.
type attempts map[string]report.Attempt

func (f *fakeAPI) tries(node string, pods []string, all attempts) {
	for _, pod := range pods {
		serve := func(key string) http.HandlerFunc {
			return func(w http.ResponseWriter, r *http.Request) {
				a, ok := all[pod+" "+r.URL.Query().Get(key)]
				if !ok {
					a = report.Attempt{Error: "not a try of this test: " + r.URL.RawQuery}
				}
				json.NewEncoder(w).Encode(a)
			}
		}
		f.routes["POST /api/v1/nodes/"+node+"/proxy/minik8s/dial/default/"+pod] = serve("address")
		f.routes["POST /api/v1/nodes/"+node+"/proxy/minik8s/lookup/default/"+pod] = serve("name")
	}
}

// A way is followed to where it stops, whatever stops it; what is not known is said.
func TestTrace(t *testing.T) {
	const vip, end = "10.96.0.7:80", "10.244.0.5:8080"
	done, refused, late := report.Attempt{Done: true, Micros: 300}, report.Attempt{Refused: true, Error: "refused"}, report.Attempt{Late: true, Micros: 2500000, Error: "timeout"}
	reached := done
	reached.Server = netip.MustParseAddrPort(end)
	found := report.Attempt{Done: true, Name: "web.default.svc.cluster.local.", Addresses: []netip.Addr{netip.MustParseAddr("10.96.0.7")}}
	right := ends(end)
	way := []string{"prerouting: the map", "svc-default/web/tcp/http: the turn"}
	open := attempts{"client web.default.svc": found, "client " + end: done, "a " + end: done, "client " + vip: reached}
	for name, x := range map[string]struct {
		calls  func(*report.Call)
		tries  attempts // beside those of the open way
		change func(client, server *corev1.Pod, svc *corev1.Service)
		code   int
		want   []string
	}{
		"open": {code: 0, want: []string{"1  pod         ok    default/client, 10.244.0.9 on n", "2  name        ok    web.default.svc.cluster.local is 10.96.0.7",
			"3  address     ok    10.96.0.7:80/TCP", "4  rules       ok    in the kernel of n:", "prerouting: the map", "leads to 1 endpoints in turn",
			"5  endpoints   ok    10.244.0.5:8080; pod a on n; policies that say who may call it: deny; listens; reached directly within 300µs",
			"6  connection  ok    to 10.96.0.7:80: connected within 300µs, to 10.244.0.5:8080 (a)", "is open"}},
		"no name": {tries: attempts{"client web.default.svc": {Error: "no such host"}}, code: 1,
			want: []string{"name        STOP  web.default.svc is not found by 10.96.0.10: no such host", "connected within", `open, but not always: look at the step "name"`}},
		"another address by name": {tries: attempts{"client web.default.svc": {Done: true, Addresses: []netip.Addr{netip.MustParseAddr("10.96.0.99")}}}, code: 1,
			want: []string{"but the Service's address is 10.96.0.7"}},
		"the kernel refuses": {calls: func(c *report.Call) { c.Kernel = report.Outcome{Otherwise: []string{"refused"}} }, tries: attempts{"client " + vip: refused}, code: 1,
			want: []string{"rules       STOP", "there refused", "that is not what the node's proxy wants", "endpoints   ok", "connection  STOP  to 10.96.0.7:80: refused", `stops at the step "rules"`, "why service web"}},
		"no table": {calls: func(c *report.Call) { c.Kernel, c.Error = report.Outcome{}, "the kernel has no base chain" }, tries: attempts{"client " + vip: late}, code: 1,
			want: []string{"the kernel has no base chain", "no answer within 2.5s"}},
		"nobody listens": {tries: attempts{"a " + end: refused, "a 127.0.0.1:8080": refused, "client " + end: refused, "client " + vip: refused}, code: 1,
			want: []string{"endpoints   STOP  10.244.0.5:8080; pod a on n; policies that say who may call it: deny; nobody listens on its port 8080", `stops at the step "endpoints"`, "logs a"}},
		"on loopback alone": {tries: attempts{"a " + end: refused, "a 127.0.0.1:8080": done, "client " + vip: refused}, code: 1,
			want: []string{"listens on its loopback address alone"}},
		"a policy": {tries: attempts{"client " + end: late, "client " + vip: late}, code: 1,
			want: []string{"listens; not reached directly: no answer within 2.5s; do the policies allow it?", `stops at the step "endpoints"`}},
		"the other node cannot be asked": {change: func(_, server *corev1.Pod, _ *corev1.Service) { server.Spec.NodeName = "away" },
			want: []string{"whether it listens is not known: away cannot be asked; reached directly"}},
		"it stays": {calls: func(c *report.Call) { c.Remembered = netip.MustParseAddrPort(end) }, want: []string{"this pod stays with 10.244.0.5:8080 (sessionAffinity)"}},
		"the pod does not run": {change: func(client, _ *corev1.Pod, _ *corev1.Service) {
			client.Status = corev1.PodStatus{Phase: corev1.PodPending}
		}, code: 1, want: []string{"pod         STOP  default/client does not run", "why pod client"}},
		"UDP": {change: func(_, _ *corev1.Pod, svc *corev1.Service) { svc.Spec.Ports[0].Protocol = corev1.ProtocolUDP },
			calls: func(c *report.Call) { c.Protocol = "UDP" }, want: []string{"10.96.0.7:80/UDP", "connection  ?     UDP was not tried", "nothing is known to stop it"}},
		"headless": {change: func(_, _ *corev1.Pod, svc *corev1.Service) { svc.Spec.ClusterIP = "None" },
			want: []string{"it is headless", "to 10.244.0.5:8080: connected"}},
		"external": {change: func(_, _ *corev1.Pod, svc *corev1.Service) {
			svc.Spec.Type, svc.Spec.ExternalName = corev1.ServiceTypeExternalName, "example.org"
		},
			want: []string{"it is another name for example.org"}},
		"another DNS policy": {change: func(client, _ *corev1.Pod, _ *corev1.Service) { client.Spec.DNSPolicy = corev1.DNSDefault }, want: []string{"by its dnsPolicy (Default) the pod itself asks others"}},
	} {
		svc, pods, slice := serviceFixture()
		client, server := whytest.PodOf("client", "", nil), pods[0]
		client.Labels = map[string]string{"app": "client"}
		client.Status.PodIP = "10.244.0.9"
		if x.change != nil {
			x.change(client, server, svc)
		}
		all := attempts{}
		for _, m := range []attempts{open, x.tries} {
			for k, v := range m {
				all[k] = v
			}
		}
		c := call("pods", right, right)
		c.Way = way
		if x.calls != nil {
			x.calls(&c)
		}
		dns := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "kube-dns"}, Spec: corev1.ServiceSpec{ClusterIP: "10.96.0.10"}}
		deny := &networkingv1.NetworkPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "deny"}, Spec: networkingv1.NetworkPolicySpec{PodSelector: metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}}}
		elsewhere := &networkingv1.NetworkPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "all"}}
		f := newFake(t, svc, client, pods[0], pods[1], slice, dns, deny, elsewhere, kubeletNode("n"))
		f.says("n", report.Service{Known: true, Calls: []report.Call{c}})
		f.tries("n", []string{"client", "a", "b"}, all)
		f.routes["POST /api/v1/nodes/away/proxy/minik8s/dial/default/a"] = func(w http.ResponseWriter, _ *http.Request) {
			fail(w, apierrors.NewServiceUnavailable("error trying to reach service"))
		}
		r := f.ctl("", "trace", "client", "web:80")
		for _, want := range x.want {
			if r.code != x.code || !strings.Contains(r.out, want) {
				t.Errorf("%s: code %d, without %q: %s\n%s", name, r.code, want, r.text, r.out)
			}
		}
	}
}

// Which port is meant is said, or asked for.
func TestTracePorts(t *testing.T) {
	svc, pods, slice := serviceFixture()
	svc.Spec.Ports = append(svc.Spec.Ports, corev1.ServicePort{Name: "https", Port: 443, Protocol: corev1.ProtocolTCP})
	f := newFake(t, svc, pods[0], slice, kubeletNode("n"))
	for args, says := range map[string]string{"a web": "say which one, as web:PORT; it has 80/TCP http, 443/TCP https", "a web:81": "has no port 81; it has", "a": "from which pod, to which service?"} {
		if r := f.ctl("", append([]string{"trace"}, strings.Fields(args)...)...); r.code != 2 || !strings.Contains(r.text, says) {
			t.Errorf("%s: %+v", args, r)
		}
	}
	if r := f.ctl("", "trace", "a", "svc/none"); r.code != 3 {
		t.Errorf("%+v", r)
	}
}
