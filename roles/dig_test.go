package roles_test

import (
	"os/exec"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// dig asks the cluster's DNS and returns the code, with a mark if the answer has authority, and the records of the answer, sorted:
// name, type and value.
func dig(t *testing.T, args ...string) (code string, records []string) {
	t.Helper()
	out, err := exec.Command("dig", append([]string{"@10.96.0.10", "+tries=2", "+timeout=5", "+noall", "+comments", "+answer"}, args...)...).CombinedOutput()
	if err != nil {
		t.Fatalf("dig %q: %v: %s", args, err, out)
	}
	for line := range strings.Lines(string(out)) {
		line = strings.TrimSpace(line)
		if _, rest, ok := strings.Cut(line, "status: "); ok {
			code, _, _ = strings.Cut(rest, ",")
		} else if strings.HasPrefix(line, ";; flags:") && strings.Contains(line, " aa") {
			code += " aa"
		} else if line != "" && line[0] != ';' {
			f := strings.Fields(line) // name, TTL, class, type, value
			records = append(records, strings.Join(append([]string{f[0]}, f[3:]...), " "))
		}
	}
	slices.Sort(records)
	return code, records
}

// The records of Kubernetes' DNS specification (1.1.0), asked for by a client that others have written.
func TestDig(t *testing.T) {
	needRoot(t)
	if _, err := exec.LookPath("dig"); err != nil {
		t.Skip("dig is not installed: make testtools")
	}
	p := newProcess(t)
	c := p.up()
	meta := func(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: "default", Name: name} }
	ports := []corev1.ServicePort{{Name: "http", Port: 80}, {Name: "names", Port: 53, Protocol: corev1.ProtocolUDP}}
	p.make(c, &corev1.Service{ObjectMeta: meta("web"), Spec: corev1.ServiceSpec{ClusterIP: "10.96.7.8", Ports: ports}})
	p.make(c, &corev1.Service{ObjectMeta: meta("direct"), Spec: corev1.ServiceSpec{ClusterIP: corev1.ClusterIPNone, Ports: ports}})
	p.make(c, &corev1.Service{ObjectMeta: meta("empty"), Spec: corev1.ServiceSpec{ClusterIP: corev1.ClusterIPNone, Ports: ports}})
	p.make(c, &corev1.Service{ObjectMeta: meta("alias"), Spec: corev1.ServiceSpec{Type: corev1.ServiceTypeExternalName, ExternalName: "web.default.svc.cluster.local"}})
	p.make(c, &discoveryv1.EndpointSlice{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "direct-1", Labels: map[string]string{discoveryv1.LabelServiceName: "direct"}},
		AddressType: discoveryv1.AddressTypeIPv4, Ports: []discoveryv1.EndpointPort{{Name: new("http"), Port: new(int32(8080)), Protocol: new(corev1.ProtocolTCP)}},
		Endpoints: []discoveryv1.Endpoint{{Addresses: []string{"10.1.0.1"}, Hostname: new("one")}, {Addresses: []string{"10.1.0.2"}},
			{Addresses: []string{"10.1.0.3"}, Hostname: new("ill"), Conditions: discoveryv1.EndpointConditions{Ready: new(false)}}}})
	const zone = "default.svc.cluster.local."
	p.eventually("the last object is known", func() bool {
		_, got := dig(t, "one.direct."+zone)
		return len(got) > 0
	})
	unnamed := func() string { // the specification leaves the name of an endpoint without a host name open
		_, got := dig(t, "SRV", "_http._tcp.direct."+zone)
		for _, r := range got {
			if f := strings.Fields(r); len(f) > 1 && f[len(f)-1] != "one.direct."+zone {
				return strings.TrimSuffix(f[len(f)-1], ".direct."+zone)
			}
		}
		return ""
	}()
	for _, x := range []struct {
		ask  string
		code string
		want []string
	}{
		{"TXT dns-version.cluster.local.", "NOERROR aa", []string{`dns-version.cluster.local. TXT "1.1.0"`}},
		{"A web." + zone, "NOERROR aa", []string{"web." + zone + " A 10.96.7.8"}},
		{"+tcp A web." + zone, "NOERROR aa", []string{"web." + zone + " A 10.96.7.8"}},
		{"+bufsize=1232 A WEB." + zone, "NOERROR aa", []string{"WEB." + zone + " A 10.96.7.8"}},
		{"+noedns A web." + zone, "NOERROR aa", []string{"web." + zone + " A 10.96.7.8"}},
		{"AAAA web." + zone, "NOERROR aa", nil},
		{"SRV _http._tcp.web." + zone, "NOERROR aa", []string{"_http._tcp.web." + zone + " SRV 0 100 80 web." + zone}},
		{"SRV _names._udp.web." + zone, "NOERROR aa", []string{"_names._udp.web." + zone + " SRV 0 100 53 web." + zone}},
		{"SRV _http._udp.web." + zone, "NXDOMAIN aa", nil},
		{"SRV _https._tcp.web." + zone, "NXDOMAIN aa", nil},
		{"-x 10.96.7.8", "NOERROR aa", []string{"8.7.96.10.in-addr.arpa. PTR web." + zone}},
		{"-x 10.96.0.1", "NOERROR aa", []string{"1.0.96.10.in-addr.arpa. PTR kubernetes." + zone}},
		{"A kubernetes." + zone, "NOERROR aa", []string{"kubernetes." + zone + " A 10.96.0.1"}},
		{"A kube-dns.kube-system.svc.cluster.local.", "NOERROR aa", []string{"kube-dns.kube-system.svc.cluster.local. A 10.96.0.10"}},
		{"A direct." + zone, "NOERROR aa", []string{"direct." + zone + " A 10.1.0.1", "direct." + zone + " A 10.1.0.2"}},
		{"A one.direct." + zone, "NOERROR aa", []string{"one.direct." + zone + " A 10.1.0.1"}},
		{"A ill.direct." + zone, "NXDOMAIN aa", nil},
		{"A " + unnamed + ".direct." + zone, "NOERROR aa", []string{unnamed + ".direct." + zone + " A 10.1.0.2"}},
		{"SRV _http._tcp.direct." + zone, "NOERROR aa", []string{"_http._tcp.direct." + zone + " SRV 0 100 8080 " + unnamed + ".direct." + zone, "_http._tcp.direct." + zone + " SRV 0 100 8080 one.direct." + zone}},
		{"-x 10.1.0.1", "NOERROR aa", []string{"1.0.1.10.in-addr.arpa. PTR one.direct." + zone}},
		{"A empty." + zone, "NXDOMAIN aa", nil},
		{"CNAME alias." + zone, "NOERROR aa", []string{"alias." + zone + " CNAME web." + zone}},
		{"A alias." + zone, "NOERROR aa", []string{"alias." + zone + " CNAME web." + zone, "web." + zone + " A 10.96.7.8"}},
		{"A gone." + zone, "NXDOMAIN aa", nil},
		{"A web.nowhere.svc.cluster.local.", "NXDOMAIN aa", nil},
		{"A default.svc.cluster.local.", "NOERROR aa", nil},
		{"SOA cluster.local.", "NOERROR aa", nil}, // its value is not specified
	} {
		code, got := dig(t, strings.Fields(x.ask)...)
		if strings.HasPrefix(x.ask, "SOA") {
			got = nil
		}
		if code != x.code || !slices.Equal(got, x.want) {
			t.Errorf("dig %s: %s %q; want %s %q", x.ask, code, got, x.code, x.want)
		}
	}
	// A name that does not exist comes with the zone's SOA, by which resolvers know how long they may remember that.
	out, err := exec.Command("dig", "@10.96.0.10", "+noall", "+authority", "A", "gone."+zone).CombinedOutput()
	if f := strings.Fields(string(out)); err != nil || len(f) < 4 || f[0] != "cluster.local." || f[3] != "SOA" {
		t.Errorf("the authority of a name that does not exist: %s, %v", out, err)
	}
	// The search path of pods makes short names whole.
	if _, got := dig(t, "+search", "+ndots=5", "+domain=svc.cluster.local", "web.default"); !slices.Equal(got, []string{"web." + zone + " A 10.96.7.8"}) {
		t.Errorf("by search: %q", got)
	}
}
