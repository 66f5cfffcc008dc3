package names

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/miekg/dns"
)

func TestIn(t *testing.T) {
	const domain = "cluster.local."
	for name, want := range map[string]Name{
		"":                            {Kind: Apex},
		"dns-version":                 {Kind: Version},
		"svc":                         {Kind: Branch},
		"pod":                         {Kind: Branch},
		"dns":                         {Kind: Branch},
		"ns.dns":                      {Kind: NameServer},
		"nobody":                      {},
		"a.b.nobody":                  {},
		"default.svc":                 {Kind: Namespace, Namespace: "default"},
		"default.pod":                 {Kind: PodNamespace, Namespace: "default"},
		"web.default.svc":             {Kind: Service, Namespace: "default", Service: "web"},
		"_tcp.web.default.svc":        {Kind: Protocol, Namespace: "default", Service: "web", Protocol: "tcp"},
		"_http._tcp.web.default.svc":  {Kind: Port, Namespace: "default", Service: "web", Protocol: "tcp", Port: "http"},
		"web-0.web.default.svc":       {Kind: Endpoint, Namespace: "default", Service: "web", Hostname: "web-0"},
		"10-0-0-1.web.default.svc":    {Kind: Endpoint, Namespace: "default", Service: "web", Hostname: "10-0-0-1"},
		"http._tcp.web.default.svc":   {},
		"_http.tcp.web.default.svc":   {},
		"_a._b._tcp.web.default.svc":  {},
		"x.web-0.web.default.svc":     {},
		"10-0-0-1.default.pod":        {Kind: Pod, Namespace: "default", Address: netip.MustParseAddr("10.0.0.1")},
		"2001-db8--1.default.pod":     {Kind: Pod, Namespace: "default", Address: netip.MustParseAddr("2001:db8::1")},
		"10-0-0-256.default.pod":      {},
		"a.10-0-0-1.default.pod":      {},
		"hello.default.pod":           {},
		"web.default.svc.other":       {},
		"default.svc.cluster.local":   {}, // twice the domain, as a search path makes it
		"www.example.com":             {},
		"-.-.svc":                     {Kind: Service, Namespace: "-", Service: "-"},
		"..svc":                       {Kind: Service},
		"kubernetes.default.svc.svc":  {Kind: Endpoint, Namespace: "svc", Service: "default", Hostname: "kubernetes"},
		"_a._b.svc":                   {Kind: Service, Namespace: "_b", Service: "_a"},
		"fd00--1.default.svc":         {Kind: Service, Namespace: "default", Service: "fd00--1"},
		"_http._tcp.a.b.c.d.e.f.svc":  {},
		"fe80-0000-0000-1.x.pod":      {},
		"0-0-0-0.default.pod":         {Kind: Pod, Namespace: "default", Address: netip.MustParseAddr("0.0.0.0")},
		"1-2-3-4-5.default.pod":       {},
		"_https._tcp.kubernetes.d.sv": {},
	} {
		q := domain
		if name != "" {
			q = name + "." + domain
		}
		got, ok := In(domain, q)
		if !ok || got != want {
			t.Errorf("%s: %+v, %v; want %+v", q, got, ok, want)
		}
	}
	for _, name := range []string{"example.com.", "xcluster.local.", "local.", "."} {
		if got, ok := In(domain, name); ok {
			t.Errorf("%s is in the domain: %+v", name, got)
		}
	}
}

func TestReverse(t *testing.T) {
	for _, addr := range []string{"10.96.0.1", "0.0.0.0", "255.254.253.1", "2001:db8::1", "::", "fe80::1:2:3:4"} {
		name, err := dns.ReverseAddr(addr)
		if err != nil {
			t.Fatal(err)
		}
		if got, ok := Reverse(name); !ok || got != netip.MustParseAddr(addr) {
			t.Errorf("%s: %s, %v", name, got, ok)
		}
	}
	for _, name := range []string{"1.96.10.in-addr.arpa.", "a.0.96.10.in-addr.arpa.", "in-addr.arpa.", ".in-addr.arpa.", "x.1.0.96.10.in-addr.arpa.",
		"1.ip6.arpa.", strings.Repeat("x", 63) + ".ip6.arpa.", strings.Repeat("1", 63) + ".ip6.arpa.", "web."} {
		if got, ok := Reverse(name); ok {
			t.Errorf("%s: %s", name, got)
		}
	}
}

func TestDashed(t *testing.T) {
	for _, addr := range []string{"10.96.0.1", "2001:db8::1", "::", "::1"} {
		a := netip.MustParseAddr(addr)
		if got, ok := Undashed(Dashed(a)); !ok || got != a {
			t.Errorf("%s: %s: %s, %v", addr, Dashed(a), got, ok)
		}
	}
}

func FuzzIn(f *testing.F) {
	f.Add("_http._tcp.web.default.svc.cluster.local.")
	f.Fuzz(func(t *testing.T, name string) {
		In("cluster.local.", name)
		Reverse(name)
	})
}
