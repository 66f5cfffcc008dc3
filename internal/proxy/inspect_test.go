package proxy

import (
	"fmt"
	"net/netip"
	"os/exec"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"minik8s/internal/proxy/report"
)

// said is a report in a few words: where each call goes, and whether the kernel agrees.
func said(r report.Service) map[string]string {
	out := map[string]string{}
	for _, c := range r.Calls {
		var to []string
		for _, e := range c.Kernel.Endpoints {
			to = append(to, e.String())
		}
		slices.Sort(to)
		text := strings.Join(append(to, c.Kernel.Otherwise...), " ")
		if !c.Agrees() {
			text = "not agreed: " + text + c.Error
		}
		out[fmt.Sprintf("%s/%s from %s", c.At, c.Protocol, c.From)] = text
	}
	return out
}

// What the kernel's own rules do with each call of every kind of Service, read from the kernel, is what the proxy wants;
// and whatever others have done to the rules is seen.
func TestInspect(t *testing.T) {
	h := newHost(t)
	h.up()
	const a, b, far = "10.244.0.5", "10.244.0.6", "10.244.1.5"
	web := service("web", "10.96.0.1", port(80, 30080), port(53, 30053, corev1.ProtocolUDP), external("198.18.0.9"))
	h.put(web, a+"@", b+"@", far)
	h.put(service("none", "10.96.0.2"))
	h.put(service("local", "10.96.0.3", port(80, 30082), local), a+"@", far)
	h.put(service("dark", "10.96.0.4", internalLocal), far)
	h.put(service("guarded", "10.96.0.5", balanced("198.18.0.10", "192.0.2.0/24")), a+"@")
	h.put(service("sticky", "10.96.0.6", sticky(600)), a+"@", b+"@", far)
	const all = a + ":8080 " + b + ":8080 " + far + ":8080"
	const allUDP = a + ":8053 " + b + ":8053 " + far + ":8053"
	for name, want := range map[string]map[string]string{
		"web": {"10.96.0.1:80/TCP from pods": all, "10.96.0.1:80/TCP from host": all, "198.18.0.9:80/TCP from pods": all, "198.18.0.9:80/TCP from outside": all,
			hostAddr + ":30080/TCP from pods": all, hostAddr + ":30080/TCP from outside": all, "10.96.0.1:53/UDP from pods": allUDP, "10.96.0.1:53/UDP from host": allUDP,
			"198.18.0.9:53/UDP from pods": allUDP, "198.18.0.9:53/UDP from outside": allUDP, hostAddr + ":30053/UDP from pods": allUDP, hostAddr + ":30053/UDP from outside": allUDP},
		"none": {"10.96.0.2:80/TCP from pods": "refused", "10.96.0.2:80/TCP from host": "refused"},
		"local": {"10.96.0.3:80/TCP from pods": a + ":8080 " + far + ":8080", "10.96.0.3:80/TCP from host": a + ":8080 " + far + ":8080",
			hostAddr + ":30082/TCP from pods": a + ":8080 " + far + ":8080", hostAddr + ":30082/TCP from outside": a + ":8080"},
		"dark": {"10.96.0.4:80/TCP from pods": "dropped", "10.96.0.4:80/TCP from host": "dropped"},
		"guarded": {"10.96.0.5:80/TCP from pods": a + ":8080", "10.96.0.5:80/TCP from host": a + ":8080", "198.18.0.10:80/TCP from pods": "dropped",
			"198.18.0.10:80/TCP from outside": a + ":8080"},
		"sticky": {"10.96.0.6:80/TCP from pods": all, "10.96.0.6:80/TCP from host": all},
	} {
		r := h.proxy.Inspect("default", name, netip.Addr{})
		got := said(r)
		if !r.Known || fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%s: %v\ngot  %v\nwant %v", name, r.Why, got, want)
		}
	}
	if r := h.proxy.Inspect("default", "nobody", netip.Addr{}); r.Known || r.Why == "" || r.Node != nodeName {
		t.Errorf("%+v", r)
	}
	way := h.proxy.Inspect("default", "web", netip.MustParseAddr(b)).Calls[0].Way
	if len(way) != 2 || !strings.HasPrefix(way[0], "prerouting: ip daddr . meta l4proto . th dport vmap @services") || !strings.HasPrefix(way[1], "svc-default/web/tcp/p80: dnat ip to ") {
		t.Errorf("the way: %q", way)
	}

	// A client that stays with an endpoint.
	client := h.pod()
	for _, server := range []string{a, b, far} { // nobody answers there
		client.callWithin("tcp", "10.96.0.6:80", patience)
		c := h.proxy.Inspect("default", "sticky", netip.MustParseAddr(client.addr)).Calls[0]
		if !c.Remembered.IsValid() || !c.Agrees() || len(c.Kernel.Endpoints) != 3 {
			t.Errorf("it stays with one of %s: %+v", server, c)
		}
	}

	if _, err := exec.LookPath("nft"); err != nil {
		t.Skip("nft is not installed: make testtools")
	}
	table := h.config().Table
	for line, want := range map[string]string{
		"delete table ip " + table:                             "not agreed: the kernel has no base chain prerouting in table " + table,
		"flush chain ip " + table + " prerouting":              "not agreed: untouched",
		"flush chain ip " + table + " svc-default/web/tcp/p80": "not agreed: untouched",
		"flush chain ip " + table + " prerouting; delete chain ip " + table + " prerouting; add chain ip " + table + " prerouting": "not agreed: the kernel has no base chain prerouting in table " + table,
		"flush map ip " + table + " endpoints":                                                                    "not agreed: refused",
		"delete element ip " + table + " services { 10.96.0.1 . tcp . 80 }":                                       "not agreed: refused",
		"add rule ip " + table + " theirs drop; insert rule ip " + table + " svc-default/web/tcp/p80 goto theirs": "not agreed: dropped",
	} {
		h.down()
		if strings.Contains(line, "theirs") {
			line = "add chain ip " + table + " theirs; " + line
		}
		if out, err := exec.Command("nft", line).CombinedOutput(); err != nil {
			t.Fatalf("%s: %v: %s", line, err, out)
		}
		if got := said(h.proxy.Inspect("default", "web", netip.Addr{}))["10.96.0.1:80/TCP from pods"]; got != want {
			t.Errorf("after %s: %q, want %q", line, got, want)
		}
		h.up()
		h.caughtUp()
		if got := said(h.proxy.Inspect("default", "web", netip.Addr{}))["10.96.0.1:80/TCP from pods"]; got != all {
			t.Errorf("repaired after %s: %q", line, got)
		}
	}
}
