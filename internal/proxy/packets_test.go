package proxy

import (
	"fmt"
	"io"
	"net/http"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
)

func local(s *corev1.Service) {
	s.Spec.ExternalTrafficPolicy = corev1.ServiceExternalTrafficPolicyLocal
}
func internalLocal(s *corev1.Service) {
	p := corev1.ServiceInternalTrafficPolicyLocal
	s.Spec.InternalTrafficPolicy = &p
}

func sticky(seconds int32) func(*corev1.Service) {
	return func(s *corev1.Service) {
		s.Spec.SessionAffinity = corev1.ServiceAffinityClientIP
		s.Spec.SessionAffinityConfig = &corev1.SessionAffinityConfig{ClientIP: &corev1.ClientIPConfig{TimeoutSeconds: &seconds}}
	}
}

func external(ips ...string) func(*corev1.Service) {
	return func(s *corev1.Service) { s.Spec.ExternalIPs = ips }
}

func balanced(ip string, sources ...string) func(*corev1.Service) {
	return func(s *corev1.Service) {
		s.Spec.Type, s.Spec.LoadBalancerSourceRanges = corev1.ServiceTypeLoadBalancer, sources
		s.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{IP: ip}}
	}
}

// Connections from everywhere reach the endpoints of Services, in turn.
func TestConnections(t *testing.T) {
	h := newHost(t)
	a, b, c := h.pod(), h.pod(), h.pod()
	for name, m := range map[string]*machineNS{"a": a, "b": b, "n": h.neighbor} {
		m.serve(name, 8080)
		m.serve(name, 8053)
	}
	h.up()
	here := &machineNS{t: t}
	web := service("web", "10.96.0.1", port(80, 30080), port(53, 30053, corev1.ProtocolUDP), external("198.18.0.77", "198.51.100.1"))
	h.put(web, a.addr+"@", b.addr+"@")
	other := service("other", "10.6.0.1")
	h.put(other, a.addr+"@", b.addr+"@")
	far := service("far", "10.96.0.3", port(80, 30083))
	h.put(far, h.neighbor.addr)
	none := service("none", "10.96.0.4", port(80, 30084), port(53, 30054, corev1.ProtocolUDP), external("198.18.0.78"))
	h.put(none)

	t.Run("turns, of two services in alternation", func(t *testing.T) {
		seen := map[string]int{}
		for range 10 {
			for _, addr := range []string{"10.96.0.1:80", "10.6.0.1:80"} {
				server, _ := c.call("tcp", addr)
				seen[addr+" "+server]++
			}
		}
		for _, k := range []string{"10.96.0.1:80 a", "10.96.0.1:80 b", "10.6.0.1:80 a", "10.6.0.1:80 b"} {
			if seen[k] != 5 {
				t.Errorf("answers: %v; want five of %s", seen, k)
			}
		}
	})
	for _, row := range []struct {
		name   string
		from   *machineNS
		addr   string
		server string // any of these letters
		client string
	}{
		{"from a pod", c, "10.96.0.1:80", "ab", c.addr},
		{"from the host", here, "10.96.0.1:80", "ab", hostAddr},
		{"from a pod to a node port", c, hostAddr + ":30080", "ab", c.addr},
		{"from the host to a node port", here, hostAddr + ":30080", "ab", hostAddr},
		{"from the host to a node port on loopback", here, "127.0.0.1:30080", "ab", ""},
		{"from outside to a node port", h.outside, "198.51.100.1:30080", "ab", h.outside.addr},
		{"from outside to an external address", h.outside, "198.18.0.77:80", "ab", h.outside.addr},
		{"from outside to an external address of the node", h.outside, "198.51.100.1:80", "ab", h.outside.addr},
		{"from outside to the service's own address", h.outside, "10.96.0.1:80", "ab", h.outside.addr},
		{"from a pod to an external address", c, "198.18.0.77:80", "ab", c.addr},
		{"to an endpoint elsewhere, from a pod", c, "10.96.0.3:80", "n", "203.0.113.1"},
		{"to an endpoint elsewhere, from the host", here, "10.96.0.3:80", "n", "203.0.113.1"},
		{"to an endpoint elsewhere, from outside", h.outside, "198.51.100.1:30083", "n", "203.0.113.1"},
		{"to an endpoint elsewhere, by loopback", here, "127.0.0.1:30083", "n", "203.0.113.1"},
		{"no endpoints, from a pod", c, "10.96.0.4:80", refused, ""},
		{"no endpoints, from the host", here, "10.96.0.4:80", refused, ""},
		{"no endpoints, from outside", h.outside, "198.51.100.1:30084", refused, ""},
		{"no endpoints, to an external address", h.outside, "198.18.0.78:80", refused, ""},
		{"no endpoints, by loopback", here, "127.0.0.1:30084", refused, ""},
		{"no such port, from a pod", c, "10.96.0.1:81", refused, ""},
		{"no such port, from the host", here, "10.96.0.1:81", refused, ""},
		{"no such port, from outside", h.outside, "10.96.0.1:81", refused, ""},
	} {
		t.Run(row.name, func(t *testing.T) {
			for _, network := range []string{"tcp", "udp"} {
				addr, ok := row.addr, true
				if network == "udp" {
					if addr, ok = map[string]string{"10.96.0.1:80": "10.96.0.1:53", hostAddr + ":30080": hostAddr + ":30053", "127.0.0.1:30080": "127.0.0.1:30053",
						"198.51.100.1:30080": "198.51.100.1:30053", "198.18.0.77:80": "198.18.0.77:53", "198.51.100.1:80": "198.51.100.1:53", "10.96.0.4:80": "10.96.0.4:53",
						"198.51.100.1:30084": "198.51.100.1:30054", "10.96.0.1:81": "10.96.0.1:81"}[addr]; !ok {
						continue
					}
				}
				calls := 4
				if network == "udp" && row.server == refused {
					calls = 1 // the kernel limits how many ICMP errors a client gets in a second
				}
				for range calls {
					server, client := row.from.call(network, addr)
					switch {
					case row.client == "" && row.server == refused:
						if server != refused {
							t.Errorf("%s: %s, want it refused", network, server)
						}
					case len(server) != 1 || !contains(row.server, server):
						t.Errorf("%s: answered by %s", network, server)
					case row.client != "" && client != row.client:
						t.Errorf("%s: %s sees the client %s, want %s", network, server, client, row.client)
					}
				}
			}
		})
	}
	t.Run("a pod behind its own service", func(t *testing.T) {
		for _, addr := range []string{"10.96.0.1:80", hostAddr + ":30080"} {
			seen := map[string]bool{}
			for range 4 {
				server, _ := a.call("tcp", addr)
				seen[server] = true
			}
			if !seen["a"] || !seen["b"] || len(seen) != 2 {
				t.Errorf("%s: answered by %v", addr, seen)
			}
		}
	})
	t.Run("ended", func(t *testing.T) {
		h.cluster.services.remove("default", "web")
		h.cluster.slices.remove("default", "web-1")
		h.caughtUp()
		if server, _ := h.outside.callWithin("tcp", "198.51.100.1:30080", 5*time.Second); server != refused {
			t.Errorf("a node port that is gone: %s", server)
		}
		if server, _ := c.call("tcp", "10.6.0.1:80"); !contains("ab", server) {
			t.Errorf("the other service: %s", server)
		}
	})
	t.Run("stopped and cleaned", func(t *testing.T) {
		h.down()
		if server, _ := c.call("tcp", "10.6.0.1:80"); !contains("ab", server) {
			t.Errorf("without a daemon: %s", server)
		}
	})
}

func contains(letters, server string) bool {
	for _, l := range letters {
		if string(l) == server {
			return true
		}
	}
	return false
}

// The traffic policies Local, a load balancer's sources and its port for health.
func TestPolicies(t *testing.T) {
	h := newHost(t)
	a, b, c := h.pod(), h.pod(), h.pod()
	for name, m := range map[string]*machineNS{"a": a, "b": b, "n": h.neighbor} {
		m.serve(name, 8080)
	}
	here := &machineNS{t: t}
	h.up()
	h.put(service("web", "10.96.1.1", balanced("198.18.0.80"), port(80, 30180), local, func(s *corev1.Service) { s.Spec.HealthCheckNodePort = 30999 }), a.addr+"@", h.neighbor.addr)
	h.put(service("away", "10.96.1.2", port(80, 30182), local, internalLocal), h.neighbor.addr)
	h.put(service("mine", "10.96.1.3", internalLocal), a.addr+"@", h.neighbor.addr)
	h.put(service("picky", "10.96.1.4", balanced("198.18.0.81", "198.51.100.2/32", "10.244.0.0/16"), port(80, 30184)), a.addr+"@")
	h.put(service("shut", "10.96.1.5", balanced("198.18.0.82", "192.0.2.0/24"), port(80, 30185)), a.addr+"@")
	h.put(service("ending", "10.96.1.6"), a.addr+"~@", b.addr+"!@")
	h.put(service("ready", "10.96.1.7"), a.addr+"~@", b.addr+"@")
	for _, row := range []struct {
		name, addr string
		from       *machineNS
		want       string // the servers that answer
		client     string
	}{
		{"external local, from outside", "198.51.100.1:30180", h.outside, "a", h.outside.addr},
		{"external local, to the balancer", "198.18.0.80:80", h.outside, "a", h.outside.addr},
		{"external local, from a pod", hostAddr + ":30180", c, "an", ""},
		{"external local, from the host", hostAddr + ":30180", here, "an", ""},
		{"external local, by loopback", "127.0.0.1:30180", here, "an", ""},
		{"external local, by its own address", "10.96.1.1:80", c, "an", ""},
		{"external local, none here, from outside", "198.51.100.1:30182", h.outside, silence, ""},
		{"external local, none here, from a pod", hostAddr + ":30182", c, "n", ""},
		{"internal local, none here", "10.96.1.2:80", c, silence, ""},
		{"internal local", "10.96.1.3:80", c, "a", c.addr},
		{"internal local, from the host", "10.96.1.3:80", here, "a", ""},
		{"an allowed source", "198.18.0.81:80", h.outside, "a", h.outside.addr},
		{"an allowed pod", "198.18.0.81:80", c, "a", c.addr},
		{"a source that is not allowed", "198.18.0.82:80", h.outside, silence, ""},
		{"a pod that is not allowed", "198.18.0.82:80", c, silence, ""},
		{"the node is allowed", "198.18.0.82:80", here, "a", ""},
		{"sources do not guard the node port", "198.51.100.1:30185", h.outside, "a", ""},
		{"an ending endpoint while there is no other", "10.96.1.6:80", c, "a", ""},
		{"no ending endpoint while there is another", "10.96.1.7:80", c, "b", ""},
	} {
		t.Run(row.name, func(t *testing.T) {
			if row.want == silence {
				if server, _ := row.from.callWithin("tcp", row.addr, patience); server != silence {
					t.Errorf("%s, want it dropped", server)
				}
				return
			}
			seen := map[string]bool{}
			for range 6 {
				server, client := row.from.call("tcp", row.addr)
				if seen[server] = true; !contains(row.want, server) || row.client != "" && client != row.client {
					t.Errorf("answered by %s, who sees %s; want %s", server, client, row.client)
				}
			}
			if len(seen) != len(row.want) {
				t.Errorf("answered by %v, want all of %s", seen, row.want)
			}
		})
	}
	health := func() (int, string) {
		resp, err := http.Get("http://" + hostAddr + ":30999/")
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close() //nolint:errcheck // a test's
		body, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return resp.StatusCode, resp.Header.Get("X-Load-Balancing-Endpoint-Weight") + " " + string(body)
	}
	if code, body := health(); code != 200 || body != `1 {"service":{"namespace":"default","name":"web"},"localEndpoints":1,"serviceProxyHealthy":true}`+"\n" {
		t.Errorf("health: %d %s", code, body)
	}
	web, _ := h.cluster.services.Get("default", "web")
	h.put(web, h.neighbor.addr)
	if code, body := health(); code != 503 || body[0] != '0' {
		t.Errorf("health without an endpoint here: %d %s", code, body)
	}
}

// A client stays with its endpoint until that goes or the time is over.
func TestAffinity(t *testing.T) {
	h := newHost(t)
	a, b, c, d := h.pod(), h.pod(), h.pod(), h.pod()
	for name, m := range map[string]*machineNS{"a": a, "b": b, "n": h.neighbor} {
		m.serve(name, 8080)
	}
	h.up()
	web := service("web", "10.96.2.1", port(80, 30280), sticky(600))
	h.put(web, a.addr+"@", b.addr+"@", h.neighbor.addr)
	addrs := map[string]string{"a": a.addr + "@", "b": b.addr + "@", "n": h.neighbor.addr}
	of := func(m *machineNS) string {
		t.Helper()
		first, _ := m.call("tcp", "10.96.2.1:80")
		for _, addr := range []string{"10.96.2.1:80", hostAddr + ":30280", "10.96.2.1:80"} {
			if next, _ := m.call("tcp", addr); next != first {
				t.Fatalf("%s after %s", next, first)
			}
		}
		return first
	}
	first := map[*machineNS]string{}
	taken := map[string]bool{}
	for _, m := range []*machineNS{c, d, h.outside} {
		first[m] = of(m)
		taken[first[m]] = true
	}
	if len(taken) != 3 {
		t.Errorf("three clients got %v", taken)
	}
	gone := first[c]
	var rest []string
	for name, addr := range addrs {
		if name != gone {
			rest = append(rest, addr)
		}
	}
	h.put(web, rest...)
	if now := of(c); now == gone {
		t.Errorf("still with %s, which is gone", gone)
	}
	if now := of(d); now != first[d] {
		t.Errorf("from %s to %s, which need not be", first[d], now)
	}
	h.put(web, append(rest, addrs[gone])...)
	if now := of(d); now != first[d] {
		t.Errorf("from %s to %s after one came", first[d], now)
	}
	h.down()
	h.up()
	if now := of(d); now != first[d] {
		t.Errorf("from %s to %s over a restart", first[d], now)
	}

	brief := service("brief", "10.96.2.2", sticky(1))
	h.put(brief, a.addr+"@", b.addr+"@")
	was, _ := c.call("tcp", "10.96.2.2:80")
	h.until("the client is forgotten", func() bool {
		list, err := h.kernel.Elements(h.proxy.state.table(), fmt.Sprintf("clients-default/brief/tcp/p80/%s/8080", map[string]string{"a": a.addr, "b": b.addr}[was]))
		return err == nil && len(list) == 0
	})
	if now, _ := c.call("tcp", "10.96.2.2:80"); now == was {
		t.Errorf("%s again: no turn was taken", now)
	}
}
