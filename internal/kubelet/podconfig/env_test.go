package podconfig

import (
	"net/netip"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"minik8s/internal/kubelet/cri"
	"minik8s/internal/kubelet/plan/plantest"
)

func TestExpand(t *testing.T) {
	values := map[string]string{"A": "1", "B": "$(A)", "": "empty"}
	for in, want := range map[string]string{
		"plain": "plain", "$(A)": "1", "x$(A)y$(A)": "x1y1", "$(NO)": "$(NO)", "$$(A)": "$(A)", "$$$(A)": "$1",
		"$A": "$A", "$(A": "$(A", "$": "$", "$$": "$", "$(B)": "$(A)", "a$": "a$", "$()": "empty", "$(A$(A)": "$(A$(A)",
	} {
		if got := expand(in, values); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}

func TestExpandKnown(t *testing.T) {
	values := map[string]string{"A": "1", "EMPTY": ""}
	for _, x := range []struct{ in, want, missing string }{
		{"a/$(A)", "a/1", ""}, {"$(EMPTY)b", "b", ""}, {"$$(NO)", "$(NO)", ""}, {"$(A)/$(NO)/$(ONE)", "", "NO, ONE"},
	} {
		got, err := expandKnown(x.in, values)
		if got != x.want || (err != nil) != (x.missing != "") || err != nil && !strings.Contains(err.Error(), x.missing) {
			t.Errorf("%q: %q, %v", x.in, got, err)
		}
	}
}

func field(path string) *corev1.EnvVarSource {
	return &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: path}}
}

func TestEnvironment(t *testing.T) {
	b := &Builder{NodeName: "node1", NodeIP: plantest.HostIP}
	p := plantest.Pod("web")
	p.UID, p.Labels = "u1", map[string]string{"app": "x"}
	c := &p.Spec.Containers[0]
	c.Env = []corev1.EnvVar{
		{Name: "GREETING", Value: "hello $(NAME)"}, {Name: "NAME", ValueFrom: field("metadata.name")}, {Name: "TWICE", Value: "$(NAME)-$(NAME)"},
		{Name: "IP", ValueFrom: field("status.podIP")}, {Name: "APP", ValueFrom: field("metadata.labels['app']")}, {Name: "NAME", Value: "other"},
	}
	env, err := b.environment(t.Context(), p, c, &cri.Sandbox{Addresses: []netip.Addr{netip.MustParseAddr("10.0.0.7")}})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range env {
		got = append(got, e.Name+"="+e.Value)
	}
	want := "GREETING=hello $(NAME);NAME=other;TWICE=web-web;IP=10.0.0.7;APP=x"
	if s := strings.Join(got, ";"); s != want { // no HOSTNAME: nobody declared it, so $(HOSTNAME) is no reference
		t.Errorf("%s, want %s", s, want)
	}
	c.Env = []corev1.EnvVar{{Name: "X", ValueFrom: field("status.nothing")}}
	if _, err := b.environment(t.Context(), p, c, nil); err == nil {
		t.Error("no error for a field that does not exist")
	}
}

func TestDNS(t *testing.T) {
	node := cri.DNS{Servers: []string{"1.1.1.1"}, Searches: []string{"corp"}, Options: []string{"rotate"}}
	show := func(d cri.DNS) string {
		return strings.Join(d.Servers, ",") + " " + strings.Join(d.Searches, ",") + " " + strings.Join(d.Options, ",")
	}
	two := "2"
	config := &corev1.PodDNSConfig{Nameservers: []string{"9.9.9.9"}, Searches: []string{"more"}, Options: []corev1.PodDNSConfigOption{{Name: "ndots", Value: &two}}}
	cluster := "default.svc.cluster.local,svc.cluster.local,cluster.local,corp"
	for _, c := range []struct {
		name    string
		servers []string
		policy  corev1.DNSPolicy
		host    bool
		config  *corev1.PodDNSConfig
		want    string
	}{
		{"cluster first", []string{"10.96.0.10"}, "", false, nil, "10.96.0.10 " + cluster + " ndots:5"},
		{"no cluster DNS yet", nil, corev1.DNSClusterFirst, false, nil, "  "},
		{"on the host", []string{"10.96.0.10"}, corev1.DNSClusterFirst, true, nil, "  "},
		{"on the host, asked for", []string{"10.96.0.10"}, corev1.DNSClusterFirstWithHostNet, true, nil, "10.96.0.10 " + cluster + " ndots:5"},
		{"default", []string{"10.96.0.10"}, corev1.DNSDefault, false, nil, "  "},
		{"none", []string{"10.96.0.10"}, corev1.DNSNone, false, config, "9.9.9.9 more ndots:2"},
		{"default and more", nil, corev1.DNSDefault, false, config, "1.1.1.1,9.9.9.9 corp,more rotate,ndots:2"},
		{"cluster and more", []string{"10.96.0.10"}, "", false, config, "10.96.0.10,9.9.9.9 " + cluster + ",more ndots:2"},
	} {
		b := &Builder{ClusterDNS: c.servers, ClusterDomain: "cluster.local"}
		p := plantest.Pod("web")
		p.Spec.DNSPolicy, p.Spec.HostNetwork, p.Spec.DNSConfig = c.policy, c.host, c.config
		dns, err := b.dnsOf(t.Context(), p, node)
		if got := show(dns); err != nil || got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

func TestHostname(t *testing.T) {
	b := &Builder{NodeName: "node1", ClusterDomain: "cluster.local"}
	yes := true
	long := strings.Repeat("a", 62) + "-bcd"
	for _, c := range []struct {
		name, hostname, subdomain string
		fqdn                      *bool
		host                      bool
		override                  *string
		want, domain              string
	}{
		{"web", "", "", nil, false, nil, "web", ""},
		{"web", "h", "s", nil, false, nil, "h", "s.default.svc.cluster.local"},
		{"web", "h", "s", &yes, false, nil, "h.s.default.svc.cluster.local", "s.default.svc.cluster.local"},
		{"web", "h", "", &yes, false, nil, "h", ""},
		{"web", "", "", nil, true, nil, "node1", ""}, {long, "", "", nil, false, nil, strings.Repeat("a", 62), ""},
		{"web", "h", "s", nil, false, new("a.b"), "a.b", ""},
	} {
		p := plantest.Pod(c.name)
		p.Spec.HostnameOverride = c.override
		p.Spec.Hostname, p.Spec.Subdomain, p.Spec.SetHostnameAsFQDN, p.Spec.HostNetwork = c.hostname, c.subdomain, c.fqdn, c.host
		if got, domain := b.hostnameOf(p), b.domainOf(p); got != c.want || domain != c.domain {
			t.Errorf("%+v: %q in %q", c, got, domain)
		}
	}
}
