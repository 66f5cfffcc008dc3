package hosts_test

import (
	"net/netip"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"minik8s/internal/api"
	"minik8s/internal/client"
)

// With direct routes pods reach each other by their hosts' own links where these share one, and by VXLAN past a router; a host
// that gets another address is followed in both.
func TestDirectRoutes(t *testing.T) {
	t.Parallel()
	lab := newLab(t)
	const flags = " --pod-network=direct"
	prepared(t, lab, "host m1\nhost w1\nhost w2 in 2\nstart m1"+flags+"\njoin w1 to m1"+flags+"\njoin w2 to m1"+flags+`
expect node w1 Ready
expect node w2 Ready
`)
	m1 := lab.Host("m1")
	c, err := m1.API()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"m1", "w1", "w2"} {
		pod := script("on-"+name, "hostname > /tmp/index.html; exec httpd -f -p 80 -h /tmp", corev1.RestartPolicyAlways)
		p := &corev1.Pod{ObjectMeta: pod.ObjectMeta, Spec: pod.Spec}
		p.Namespace, p.Name = "default", "on-"+name
		p.Spec.NodeSelector = map[string]string{corev1.LabelHostname: name}
		p.Spec.Containers[0].ReadinessProbe = &corev1.Probe{PeriodSeconds: 1, ProbeHandler: corev1.ProbeHandler{Exec: &corev1.ExecAction{Command: []string{"test", "-e", "/tmp/index.html"}}}}
		if _, err := c.Create(t.Context(), p, client.WriteOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	reached := "expect pod on-m1 on m1\nexpect pod on-w1 on w1\nexpect pod on-w2 on w2\n"
	for _, to := range []string{"on-m1", "on-w1", "on-w2"} {
		for _, from := range []string{"on-m1", "on-w1", "on-w2", "m1", "w2"} {
			if from != to {
				reached += "expect answer " + to + " from " + from + "\n"
			}
		}
	}
	pods := func(name string) netip.Prefix {
		t.Helper()
		node, err := client.Get[*corev1.Node](t.Context(), c, client.Key{Kind: api.Nodes, Name: name})
		if err != nil {
			t.Fatal(err)
		}
		return netip.MustParsePrefix(node.Spec.PodCIDR)
	}
	prepared(t, lab, reached)
	ways := func() {
		t.Helper()
		if by, link := m1.NextHop(pods("w1")); by != lab.Host("w1").Address || link != "veth" {
			t.Errorf("to the pods of w1, on the same link, by %s on a %s", by, link)
		}
		if _, link := m1.NextHop(pods("w2")); link != "vxlan" {
			t.Errorf("to the pods of w2, behind a router, on a %s", link)
		}
	}
	ways()
	prepared(t, lab, "move w1\nexpect address w1\nexpect node w1 Ready\n"+reached)
	ways()
}
