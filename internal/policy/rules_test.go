package policy

import (
	"strings"
	"testing"

	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"minik8s/internal/nft"
	"minik8s/internal/policy/plan"
)

// What upstream's tests of sig-network ask of policies (test/e2e/network/netpol), and what the API says beside. Each row has
// packets that pass and packets that do not: FROM TO PORT.
func TestSemantics(t *testing.T) {
	except := func(op metav1.LabelSelectorOperator, values ...string) npPeer {
		return npPeer{NamespaceSelector: &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "ns", Operator: op, Values: values}}}}
	}
	denyAll := np("x", "deny", "")
	for _, row := range []struct {
		name          string
		policies      []*networkingv1.NetworkPolicy
		passes, stays string
	}{
		{"none: all is open", nil, "y/a x/a 80, x/a y/a 80, z/a x/a /ICMP, 192.0.2.9 x/a 80, x/a 192.0.2.9 80", ""},
		{"default deny of ingress", []*networkingv1.NetworkPolicy{denyAll},
			"x/a x/a 80, x/a y/a 80, x/b 192.0.2.9 80, y/a y/b 80", "x/b x/a 80, y/a x/a 80, z/a x/a 81/UDP, 192.0.2.9 x/a 80, x/b x/a /ICMP"},
		{"default deny of both", []*networkingv1.NetworkPolicy{np("x", "deny", "", typed(ingress, egress))},
			"x/a x/a 80, y/a y/b 80", "x/b x/a 80, y/a x/a 80, x/a y/a 80, x/a 192.0.2.9 53/UDP, x/a z/b /ICMP"},
		{"default deny of egress", []*networkingv1.NetworkPolicy{np("x", "deny", "", typed(egress))},
			"y/a x/a 80, 192.0.2.9 x/a 80, x/a x/a 80", "x/a x/b 80, x/a y/a 80"},
		{"an empty podSelector and no types, with egress rules, is both", []*networkingv1.NetworkPolicy{np("x", "p", "", func(s *networkingv1.NetworkPolicySpec) {
			s.Egress = []networkingv1.NetworkPolicyEgressRule{{To: []npPeer{inSpaces("ns=y")}}}
		})}, "x/a y/a 80", "y/a x/a 80, x/a z/a 80"},
		{"only the selected pods", []*networkingv1.NetworkPolicy{np("x", "p", "pod=a")}, "y/a x/b 80", "y/a x/a 80"},
		{"an empty rule allows all", []*networkingv1.NetworkPolicy{denyAll, np("x", "all", "", in(nil))}, "y/a x/a 80, 192.0.2.9 x/b 99/SCTP, z/a x/a /ICMP", ""},
		{"an empty egress rule allows all", []*networkingv1.NetworkPolicy{np("x", "all", "", out(nil))}, "x/a y/a 80, x/a 192.0.2.9 99/SCTP, y/a x/a 80", ""},
		{"pods of the own namespace", []*networkingv1.NetworkPolicy{np("x", "p", "pod=a", in(nil, pods("pod=b")))},
			"x/b x/a 80, x/b x/a 81/UDP, x/b x/a /ICMP", "x/c x/a 80, y/b x/a 80, z/b x/a 80, 192.0.2.9 x/a 80"},
		{"all pods of the own namespace", []*networkingv1.NetworkPolicy{np("x", "p", "pod=a", in(nil, pods("")))}, "x/b x/a 80, x/c x/a 80", "y/b x/a 80, 192.0.2.9 x/a 80"},
		{"namespaces by label", []*networkingv1.NetworkPolicy{np("x", "p", "pod=a", in(nil, inSpaces("ns=y")))}, "y/b x/a 80, y/a x/a 80", "x/b x/a 80, z/b x/a 80"},
		{"all namespaces", []*networkingv1.NetworkPolicy{np("x", "p", "pod=a", in(nil, inSpaces("")))}, "y/b x/a 80, x/c x/a 80, z/a x/a 80", "192.0.2.9 x/a 80"},
		{"namespaces by expression", []*networkingv1.NetworkPolicy{np("x", "p", "pod=a", in(nil, except(metav1.LabelSelectorOpNotIn, "x")))}, "y/b x/a 80, z/b x/a 80", "x/b x/a 80"},
		{"a namespace by its name", []*networkingv1.NetworkPolicy{np("x", "p", "pod=a", in(nil, inSpaces("kubernetes.io/metadata.name=z")))}, "z/b x/a 80", "y/b x/a 80"},
		{"namespace and pod in one peer: both", []*networkingv1.NetworkPolicy{np("x", "p", "pod=a", in(nil, both("ns=y", "pod=b")))}, "y/b x/a 80", "y/a x/a 80, x/b x/a 80, z/b x/a 80"},
		{"namespace and pod in two peers: either", []*networkingv1.NetworkPolicy{np("x", "p", "pod=a", in(nil, inSpaces("ns=y"), pods("pod=b")))},
			"y/b x/a 80, y/a x/a 80, x/b x/a 80", "x/c x/a 80, z/b x/a 80"},
		{"a port", []*networkingv1.NetworkPolicy{np("x", "p", "pod=a", in(ports("81")))}, "y/a x/a 81, 192.0.2.9 x/a 81", "y/a x/a 80, y/a x/a 81/UDP, y/a x/a /ICMP"},
		{"ports of every protocol", []*networkingv1.NetworkPolicy{np("x", "p", "pod=a", in(ports("80", "81/UDP", "82/SCTP")))},
			"y/a x/a 80, y/a x/a 81/UDP, y/a x/a 82/SCTP", "y/a x/a 81, y/a x/a 80/UDP, y/a x/a 82, y/a x/a 80/SCTP"},
		{"all of a protocol", []*networkingv1.NetworkPolicy{np("x", "p", "pod=a", in(ports("/UDP")))}, "y/a x/a 1/UDP, y/a x/a 65535/UDP", "y/a x/a 80, y/a x/a 80/SCTP"},
		{"a range of ports", []*networkingv1.NetworkPolicy{np("x", "p", "pod=a", in(ports("80-90")))}, "y/a x/a 80, y/a x/a 85, y/a x/a 90", "y/a x/a 79, y/a x/a 91, y/a x/a 85/UDP"},
		{"a range of ports over a byte", []*networkingv1.NetworkPolicy{np("x", "p", "pod=a", in(ports("250-520")))}, "y/a x/a 250, y/a x/a 300, y/a x/a 520", "y/a x/a 249, y/a x/a 521"},
		{"a range that ends where it begins", []*networkingv1.NetworkPolicy{np("x", "p", "pod=a", in(ports("80-80")))}, "y/a x/a 80", "y/a x/a 81"},
		{"a named port is the target's", []*networkingv1.NetworkPolicy{np("x", "p", "", in(ports("http")))}, "y/a x/a 80, y/a x/c 81, 192.0.2.9 x/a 80", "y/a x/a 81, y/a x/c 80, y/a x/a 80/UDP"},
		{"a named port of UDP", []*networkingv1.NetworkPolicy{np("x", "p", "", in(ports("serve-81-udp/UDP")))}, "y/a x/a 81/UDP", "y/a x/a 81, y/a x/a 80/UDP"},
		{"a name that no port has", []*networkingv1.NetworkPolicy{np("x", "p", "", in(ports("nobody")))}, "", "y/a x/a 80"},
		{"a named port in egress is the peer's", []*networkingv1.NetworkPolicy{np("x", "p", "pod=a", out(ports("http"), inSpaces("ns=y")))},
			"x/a y/a 80, x/a y/c 81", "x/a y/a 81, x/a z/a 80, x/a y/c 80, x/a 192.0.2.9 80"},
		{"peers and ports: both", []*networkingv1.NetworkPolicy{np("x", "p", "pod=a", in(ports("80"), inSpaces("ns=y")))}, "y/a x/a 80", "y/a x/a 81, x/b x/a 80"},
		{"peers and ports in two rules: either", []*networkingv1.NetworkPolicy{np("x", "p", "pod=a", in(ports("80"), inSpaces("ns=y")), in(ports("81"), inSpaces("ns=z")))},
			"y/a x/a 80, z/a x/a 81", "y/a x/a 81, z/a x/a 80"},
		{"several policies: what any of them allows", []*networkingv1.NetworkPolicy{np("x", "p", "pod=a", in(ports("80"), inSpaces("ns=y"))), np("x", "q", "", in(ports("81"), inSpaces("ns=y"))), denyAll},
			"y/a x/a 80, y/a x/a 81, y/a x/b 81", "y/a x/b 80, z/a x/a 80"},
		{"a block with exceptions", []*networkingv1.NetworkPolicy{np("x", "p", "pod=a", in(nil, block("192.0.2.0/24", "192.0.2.64/26", "192.0.2.9/32")))},
			"192.0.2.8 x/a 80, 192.0.2.10 x/a 80, 192.0.2.63 x/a 80, 192.0.2.128 x/a 80, 192.0.2.255 x/a 80", "192.0.2.9 x/a 80, 192.0.2.64 x/a 80, 192.0.2.127 x/a 80, 192.0.3.0 x/a 80, y/a x/a 80"},
		{"an exception that another block has", []*networkingv1.NetworkPolicy{np("x", "p", "pod=a", in(nil, block("192.0.2.0/24", "192.0.2.64/26"), block("192.0.2.80/28")))},
			"192.0.2.80 x/a 80, 192.0.2.95 x/a 80", "192.0.2.79 x/a 80, 192.0.2.96 x/a 80"},
		{"all addresses", []*networkingv1.NetworkPolicy{np("x", "p", "pod=a", in(nil, block("0.0.0.0/0", "10.244.1.0/24")))}, "255.255.255.255 x/a 80, 1.0.0.1 x/a 80, x/b x/a 80", "y/a x/a 80"},
		{"a block of pods", []*networkingv1.NetworkPolicy{np("x", "p", "pod=a", out(nil, block("10.244.1.1/32")))}, "x/a y/a 80", "x/a y/b 80"},
		{"blocks of IPv6 alone let nobody in", []*networkingv1.NetworkPolicy{np("x", "p", "pod=a", in(nil, block("::/0")))}, "x/a x/a 80", "y/a x/a 80, 192.0.2.1 x/a 80"},
		{"egress to a label and to a block", []*networkingv1.NetworkPolicy{np("x", "p", "pod=a", out(ports("80"), pods("pod=b")), out(ports("53/UDP"), block("192.0.2.53/32")))},
			"x/a x/b 80, x/a 192.0.2.53 53/UDP, x/c x/b 80", "x/a x/c 80, x/a 192.0.2.53 53, x/a x/b 81"},
		{"both ends have to allow it", []*networkingv1.NetworkPolicy{np("x", "p", "pod=a", out(nil, inSpaces("ns=y"))), np("y", "p", "pod=a", in(nil, pods("")))},
			"x/a y/b 80, y/c y/a 80", "x/a y/a 80"},
		{"a policy about pods elsewhere does nothing here", []*networkingv1.NetworkPolicy{np("z", "p", "", typed(ingress, egress))}, "x/a z/a 80, z/a x/a 80", ""},
	} {
		t.Run(row.name, func(t *testing.T) {
			c := newCluster()
			c.put(row.policies...)
			check := func(list string, want bool) {
				for _, one := range strings.Split(list, ", ") {
					f := strings.Fields(one)
					if len(f) == 3 && c.passes(t, f[0], f[1], f[2]) != want {
						t.Errorf("%s passes: %v\n%s", one, !want, c.table(table))
					}
				}
			}
			check(row.passes, true)
			check(row.stays, false)
		})
	}
}

// Answers and what belongs to a connection pass, others' traffic is not even looked at, and it is said what is ignored.
func TestBesideTheRules(t *testing.T) {
	c := newCluster()
	c.put(np("x", "deny", "", typed(ingress, egress)))
	for _, way := range [][2]string{{"y/a", "x/a"}, {"x/a", "y/a"}, {"x/a", "192.0.2.9"}, {"192.0.2.9", "x/a"}} {
		for name, f := range map[string]func(*nft.Packet){"an answer": func(p *nft.Packet) { p.Reply = true }, "an error": func(p *nft.Packet) { p.Related = true }} {
			if !c.passes(t, way[0], way[1], "80", f) {
				t.Errorf("%s from %s to %s is dropped", name, way[0], way[1])
			}
		}
		if c.passes(t, way[0], way[1], "80") {
			t.Errorf("from %s to %s passes", way[0], way[1])
		}
	}
	// What another daemon of this host forwards, even with such an address, is none of our business.
	if !c.passes(t, "x/a", "y/a", "80", func(p *nft.Packet) { p.In, p.Out = "mkcd34xa", "mkcd34ya" }) {
		t.Error("another's traffic is dropped")
	}
	p, err := plan.Of(np("x", "six", "", in(nil, block("10.0.0.0/8", "2001:db8::/32"), block("2001:db8::/64")), out(nil, block("::/0"))))
	if want := "spec.ingress[0].from[0].ipBlock.except[0] 2001:db8::/32, spec.ingress[0].from[1].ipBlock.cidr 2001:db8::/64, spec.egress[0].to[0].ipBlock.cidr ::/0"; err != nil || strings.Join(p.Ignored, ", ") != want {
		t.Errorf("ignored: %v, %v", p.Ignored, err)
	}
}

// The rules as the nft tool shows them.
func TestRules(t *testing.T) {
	c := newCluster()
	if got := c.table(table); len(got.Sets)+len(got.Chains) > 0 {
		t.Errorf("without a policy:\n%s", got)
	}
	c.put(np("x", "p", "pod=a", in(ports("80-90", "http"), pods("pod=b"), block("192.0.2.0/24")), out(ports("53/UDP"))))
	got := c.table(table).String()
	set := peersSet(mustPeers(t, "x", pods("pod=b")))
	blocks := blockSet(plan.Ranges{{First: 0xc0000200, Last: 0xc00002ff}})
	group := groupChain(plan.Ingress, []types.NamespacedName{{Namespace: "x", Name: "p"}})
	for _, want := range []string{`	chain policy-deny {
		ip saddr . ip daddr @policy-self accept
		drop
	}
	chain policy-egress {
		type filter hook forward priority 10; policy accept;
		iifname "mkab12*" ip saddr vmap @policy-egress-pods
	}
`, `	chain policy-egress-x/p {
		meta l4proto udp th dport 53 accept
	}
	chain policy-ingress {
		type filter hook forward priority 20; policy accept;
		oifname "mkab12*" ip daddr vmap @policy-ingress-pods
	}
	chain ` + group + ` {
		ct direction reply accept
		ct state related accept
		jump policy-ingress-x/p
		goto policy-deny
	}
	chain policy-ingress-x/p {
		ip saddr @` + set + ` meta l4proto tcp th dport >= 80 th dport <= 90 accept
		ip saddr @` + set + ` ip daddr . meta l4proto . th dport @policy-port-6-http accept
		ip saddr @` + blocks + ` meta l4proto tcp th dport >= 80 th dport <= 90 accept
		ip saddr @` + blocks + ` ip daddr . meta l4proto . th dport @policy-port-6-http accept
	}
`} {
		if !strings.Contains(got, want) {
			t.Errorf("no\n%s\nin\n%s", want, got)
		}
	}
	c.change(changes{policies: map[types.NamespacedName]*plan.Policy{{Namespace: "x", Name: "p"}: nil}})
	if got := c.table(table); len(got.Sets)+len(got.Chains) > 0 {
		t.Errorf("after the last policy:\n%s", got)
	}
}

func mustPeers(t *testing.T, namespace string, peer npPeer) plan.Peers {
	t.Helper()
	p, err := plan.Of(np(namespace, "p", "", in(nil, peer)))
	if err != nil {
		t.Fatal(err)
	}
	return (*p.Rules[plan.Ingress])[0].Peers[0]
}

// What changes is followed: labels of pods and namespaces, addresses that are given anew, names that are longer than the
// kernel takes. Sets are shared by all policies with the same peers.
func TestChanges(t *testing.T) {
	c := newCluster()
	c.put(np("x", "p", "pod=a", in(nil, pods("pod=b"))), np("x", "q", "pod=c", in(nil, pods("pod=b"))), np("x", "r", "pod=c", in(nil, both("ns=y", "pod=a"))))
	sets := func() (n int) {
		for _, s := range c.table(table).Sets {
			if strings.HasPrefix(s.Name, Prefix+"peers-") {
				n++
			}
		}
		return n
	}
	if sets() != 2 {
		t.Errorf("%d sets of peers for two kinds of peers", sets())
	}
	set := func(of string, change func(p *plan.Pod)) nft.Edit {
		p := *c.pods[of]
		change(&p)
		c.pods[of] = &p
		return c.change(changes{pods: map[types.NamespacedName]*plan.Pod{{Namespace: p.Namespace, Name: p.Name}: &p}})
	}
	step := func(what, from, to string, want bool) {
		t.Helper()
		if c.passes(t, from, to, "80") != want {
			t.Errorf("%s: from %s to %s passes: %v\n%s", what, from, to, !want, c.table(table))
		}
	}
	step("at first", "x/b", "x/a", true)
	if e := set("x/b", func(p *plan.Pod) { p.Labels = labels.Set{"pod": "other"} }); len(e.Removed) != 1 || len(e.Chains)+len(e.Added) > 0 {
		t.Errorf("one pod less is %+v", e)
	}
	step("a label changed", "x/b", "x/a", false)
	set("x/b", func(p *plan.Pod) { p.Labels = labels.Set{"pod": "b"} })
	step("and back", "x/b", "x/a", true)
	set("x/a", func(p *plan.Pod) { p.Labels = labels.Set{"pod": "free"} })
	step("no longer selected", "y/a", "x/a", true)
	set("x/a", func(p *plan.Pod) { p.Labels = labels.Set{"pod": "a"} })
	step("selected again", "y/a", "x/a", false)
	step("by its namespace", "y/a", "x/c", true)
	c.change(changes{namespaces: map[string]labels.Set{"y": {"ns": "other"}}})
	step("the namespace's label changed", "y/a", "x/c", false)
	c.change(changes{namespaces: map[string]labels.Set{"y": {"ns": "y"}}})
	step("and back", "y/a", "x/c", true)

	// y/b gets the address of x/b, whose end is not known yet: the newer one has it, and one that is certain before all others.
	was := c.pods["x/b"].Addresses
	set("y/b", func(p *plan.Pod) { p.Addresses, p.Certain = was, true })
	step("its address is another's", "x/b", "x/a", false)
	set("y/b", func(p *plan.Pod) { p.Addresses, p.Certain = nil, false })
	step("and its own again", "x/b", "x/a", true)

	long := strings.Repeat("long.", 50)
	c.put(np("x", long+"a", "pod=a", in(nil, pods("pod=c"))), np("x", long+"b", "pod=c", in(nil, pods("pod=a"))))
	for _, ch := range c.table(table).Chains {
		if len(ch.Name) > 255 {
			t.Errorf("the kernel takes no name of %d bytes", len(ch.Name))
		}
	}
	step("long names", "x/c", "x/a", true)
	step("long names", "x/a", "x/c", true)
}
