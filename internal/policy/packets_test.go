package policy

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"os/exec"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"minik8s/internal/nft"
	"minik8s/internal/policy/plan"
)

// Real packets through the kernel: what a policy lets through passes, at once when it comes and when it goes.
func TestPackets(t *testing.T) {
	h := newHost(t)
	a, b, c := h.connect(), h.connect(), h.connect()
	for name, p := range map[string]*podNS{"a": a, "b": b, "c": c} {
		p.serve(8080, 8081)
		h.api.pod("x", name, here, p.addr)
	}
	h.up()
	if h.api.pods.follows() {
		t.Error("pods are followed without a policy")
	}
	check := func(when string, from, to *podNS, network string, port int, want bool) {
		t.Helper()
		from.expect(when, network, fmt.Sprintf("%s:%d", to.addr, port), want)
	}
	check("at first", b, a, "tcp", 8080, true)
	standing, datagrams := b.dial("tcp", a.addr+":8080"), b.dial("udp", a.addr+":8080")
	if !echoed(standing, patient) || !echoed(datagrams, patient) {
		t.Fatal("no connection")
	}
	h.api.policy(np("x", "deny", "", typed(ingress)))
	h.caughtUp()
	check("denied", b, a, "tcp", 8080, false)
	check("denied", b, a, "udp", 8080, false)
	check("denied, but itself", a, a, "tcp", 8080, true)
	if echoed(standing, quiet) || echoed(datagrams, quiet) {
		t.Error("a connection that is not allowed any more goes on")
	}
	if c, err := net.DialTimeout("tcp4", a.addr+":8080", quiet); err != nil {
		t.Errorf("the node does not reach its pod: %v", err)
	} else {
		c.Close() //nolint:errcheck // a test's
	}
	h.api.policy(np("x", "allow", "pod=a", in(ports("http"), pods("pod=b")), in(ports("8081/UDP"), pods("pod=c"))))
	h.caughtUp()
	check("allowed", b, a, "tcp", 8080, true)
	check("another port", b, a, "tcp", 8081, false)
	check("another protocol", b, a, "udp", 8080, false)
	check("another pod", c, a, "tcp", 8080, false)
	check("its own port", c, a, "udp", 8081, true)
	if !echoed(standing, patient) {
		t.Error("a connection that is allowed again does not go on")
	}
	h.api.noPolicy("x", "deny")
	h.api.noPolicy("x", "allow")
	h.caughtUp()
	check("no policy any more", c, a, "tcp", 8080, true)
	h.until("pods are not followed any more", func() bool { return !h.api.pods.follows() })
	h.same()

	h.api.policy(np("x", "out", "pod=b", out(ports("8080"), block(a.addr+"/32")), out(nil, block("2001:db8::/32"))))
	h.caughtUp()
	check("egress", b, a, "tcp", 8080, true)
	check("egress to another port", b, a, "tcp", 8081, false)
	check("egress to another pod", b, c, "tcp", 8080, false)
	check("to a pod with an egress policy", a, b, "tcp", 8080, true)
	if len(h.warnings) != 1 || h.warnings[0] != "out: this cluster has no addresses of IPv6, so these let nobody in: spec.egress[1].to[0].ipBlock.cidr 2001:db8::/32" {
		t.Errorf("warnings: %q", h.warnings)
	}
	h.down()
	check("without a daemon", b, c, "tcp", 8080, false)
	h.api.policies.set(types.NamespacedName{Namespace: "x", Name: "out"}, nil, false)
	h.up()
	check("what was removed meanwhile", b, c, "tcp", 8080, true)
	h.same()
}

// A pod has its policies before it starts, also while the API does not know its address, and one that is given an address anew
// has its own.
func TestAdmit(t *testing.T) {
	h := newHost(t)
	a, b := h.connect(), h.connect()
	a.serve(8080)
	h.api.pod("x", "b", here, b.addr)
	h.up()
	admit := func(name string, addr string) bool {
		t.Helper()
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "x", Name: name, UID: types.UID("x" + name), Labels: map[string]string{"pod": name}}, Spec: corev1.PodSpec{NodeName: here}}
		return h.enforcer.Admit(context.Background(), pod, []netip.Addr{netip.MustParseAddr(addr)})
	}
	if !admit("early", "10.244.0.200") { // while there is no policy
		t.Error("it waits for nothing")
	}
	h.api.policy(np("x", "deny", "pod=a", typed(ingress)))
	h.api.policy(np("x", "early", "pod=early", typed(ingress)))
	h.caughtUp()
	b.expect("while nobody knows the pod", "tcp", a.addr+":8080", true)
	if !admit("a", a.addr) {
		t.Error("a's policies are not in force")
	}
	b.expect("before the API knows its address", "tcp", a.addr+":8080", false)
	h.same()
	h.enforcer.mu.Lock()
	early := h.enforcer.state.placed[netip.MustParseAddr("10.244.0.200")]
	h.enforcer.mu.Unlock()
	if early == [2]string{} {
		t.Error("a pod that was there before the first policy is open")
	}
	h.api.pod("x", "a", here) // the API knows the pod, and not its address
	h.caughtUp()
	b.expect("while the API knows it without its address", "tcp", a.addr+":8080", false)
	if !admit("free", a.addr) {
		t.Error("the next pod's policies are not in force")
	}
	b.expect("the next pod with the address", "tcp", a.addr+":8080", true)
	h.enforcer.Release("xfree")
	h.api.pod("x", "a", here, a.addr)
	h.caughtUp()
	b.expect("the first pod with the address again", "tcp", a.addr+":8080", false)
	h.enforcer.Release("xearly")
	h.caughtUp()
	h.same()
}

// Without an API pods do not wait for ever.
func TestAdmitWithoutAPI(t *testing.T) {
	e := New(Config{Follow: func() Peers { return Peers{} }}, newSource[*networkingv1.NetworkPolicy]())
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "x", Name: "a", UID: "u"}}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if e.Admit(ctx, pod, []netip.Addr{netip.MustParseAddr("10.0.0.1")}) {
		t.Error("its policies cannot be in force")
	}
	if e.Admit(ctx, pod, []netip.Addr{netip.MustParseAddr("10.0.0.1")}) { // its next container
		t.Error("its policies are not in force because it has asked before")
	}
	e.note(func() { e.seen.late = true }) // as after the first one that waited
	pod.Name = "b"
	if e.Admit(context.Background(), pod, []netip.Addr{netip.MustParseAddr("10.0.0.2")}) {
		t.Error("its policies cannot be in force")
	}
}

// What others do to our part is undone, and the rest of the table is none of our business.
func TestOthersChangesAreRepaired(t *testing.T) {
	h := newHost(t)
	for i, name := range []string{"a", "b", "c"} {
		h.api.pod("x", name, here, fmt.Sprintf("10.244.0.%d", 100+i))
	}
	h.up()
	h.api.policy(np("x", "p", "pod=a", in(ports("80"), pods("pod=b"), block("192.0.2.0/24", "192.0.2.9/32"))))
	h.caughtUp()
	h.same()
	table := h.table()
	set := peersSet(mustPeers(t, "x", pods("pod=b")))
	for _, line := range []string{
		"delete table ip " + table,
		"flush ruleset",
		"flush chain ip " + table + " policy-ingress",
		"flush chain ip " + table + " policy-ingress-x/p",
		"add rule ip " + table + " policy-ingress-x/p accept",
		"add chain ip " + table + " policy-theirs",
		"flush map ip " + table + " policy-ingress-pods",
		"delete element ip " + table + " " + set + " { 10.244.0.101 }",
		"add element ip " + table + " " + set + " { 10.244.0.102 }",
	} {
		if out, err := exec.Command("nft", line).CombinedOutput(); err != nil {
			t.Fatalf("%s: %v: %s", line, err, out)
		}
		h.until("repaired after: "+line, func() bool {
			h.enforcer.mu.Lock()
			defer h.enforcer.mu.Unlock()
			ok, err := h.kernel.Equals(h.enforcer.state.table(table))
			return err == nil && ok
		})
	}
	// The owner repairs its part, and neither touches the other's.
	if changed, err := h.kernel.Sync(h.owners()); err != nil || !changed {
		t.Errorf("the owner's part is there: %v, %v", !changed, err)
	}
	h.same()
	h.api.noPolicy("x", "p")
	h.caughtUp()
	if ok, err := h.kernel.Equals(h.owners()); err != nil || !ok {
		t.Errorf("the owner's part is there: %v, %v", ok, err)
	}
	h.same()
}

// After any sequence of changes the kernel has exactly what an enforcer that starts then would make of the objects.
func TestRandomSequences(t *testing.T) {
	h := newHost(t)
	h.up()
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	one := func(list ...string) string { return list[r.IntN(len(list))] }
	change := func() {
		ns, name := one("x", "y", "z"), one("a", "b", "c", "d")
		switch r.IntN(8) {
		case 0, 1, 2:
			h.api.policy(randomPolicy(r, ns, name))
		case 3:
			h.api.noPolicy(ns, name)
		case 4, 5:
			var addrs []string
			for range r.IntN(2) {
				addrs = append(addrs, fmt.Sprintf("10.244.%d.%d", r.IntN(2), r.IntN(12)))
			}
			h.api.pod(ns, name, one(here, "n2"), addrs...)
		case 6:
			h.api.noPod(ns, name)
		case 7:
			h.api.namespace(ns, map[string]string{"ns": one("x", "y", "z")})
		}
	}
	for range 60 {
		for range 1 + r.IntN(8) {
			change()
		}
		h.caughtUp()
		h.same()
		fresh := h.fresh()
		h.enforcer.mu.Lock()
		have := h.enforcer.state.table(h.table())
		h.enforcer.mu.Unlock()
		if ok := equalTables(have, fresh); !ok {
			t.Fatalf("after the changes\n%s\nafresh\n%s", have, fresh)
		}
	}
	if edits, refused := h.enforcer.keeper.Counts(); edits < 5 || refused > 0 { // by chance it is seldom below 16
		t.Errorf("%d piecewise changes, of which the kernel refused %d", edits, refused)
	}
}

func randomPolicy(r *rand.Rand, ns, name string) *networkingv1.NetworkPolicy {
	peers := []npPeer{pods("pod=a"), pods("pod=b"), pods(""), inSpaces("ns=x"), inSpaces(""), both("ns=y", "pod=c"), block("10.244.0.0/16", "10.244.0.4/30"), block("0.0.0.0/0"), block("::/0")}
	list := []string{"80", "81/UDP", "http", "8000-9000", "/SCTP", "serve/UDP"}
	var changes []func(*networkingv1.NetworkPolicySpec)
	for range r.IntN(3) {
		var from []npPeer
		for range r.IntN(3) {
			from = append(from, peers[r.IntN(len(peers))])
		}
		var to []string
		for range r.IntN(3) {
			to = append(to, list[r.IntN(len(list))])
		}
		rule := in
		if r.IntN(2) == 0 {
			rule = out
		}
		changes = append(changes, rule(ports(to...), from...))
	}
	changes = append(changes, typed([]networkingv1.PolicyType{ingress, egress}[r.IntN(2)]))
	return np(ns, name, []string{"", "pod=a", "pod=b"}[r.IntN(3)], changes...)
}

// fresh is the table that a start would make of the objects.
func (h *host) fresh() nft.Table {
	s := newState(h.net.LinkPrefix())
	all := changes{policies: map[types.NamespacedName]*plan.Policy{}, pods: map[types.NamespacedName]*plan.Pod{}, namespaces: map[string]labels.Set{}}
	for name, np := range h.api.policies.objects {
		p, err := plan.Of(np)
		if err != nil {
			h.t.Fatal(err)
		}
		all.policies[name] = &p
	}
	for name, p := range h.api.pods.objects {
		all.pods[name] = plan.PodOf(p, here)
	}
	for name, ns := range h.api.namespaces.objects {
		all.namespaces[name.Name] = ns.Labels
	}
	s.change(all)
	return s.table(h.table())
}

// equalTables compares tables with their elements.
func equalTables(a, b nft.Table) bool {
	f := nft.NewFake()
	if _, err := f.Sync(a); err != nil {
		return false
	}
	changed, err := f.Sync(b)
	return err == nil && !changed
}
