package roles_test

import (
	"context"
	"fmt"
	"net"
	"os/exec"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"minik8s/internal/api"
	"minik8s/internal/client"
)

// Pods with policies: what is denied, and what stays open, through Services and names; pods that start later, a killed daemon,
// and nothing left behind.
func TestNetworkPolicies(t *testing.T) {
	needRoot(t)
	p := newProcess(t)
	c := p.up()
	meta := func(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: "default", Name: name} }
	web := shell("web", "mkdir /w && echo hello > /w/index.html && exec httpd -f -p 8080 -h /w")
	web.Labels = map[string]string{"app": "web"}
	web.Spec.Containers[0].Ports = []corev1.ContainerPort{{Name: "http", ContainerPort: 8080}}
	web.Spec.Containers[0].ReadinessProbe = &corev1.Probe{PeriodSeconds: 1, ProbeHandler: corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: "/", Port: intstr.FromString("http")}}}
	friend, other := shell("friend", forever), shell("other", forever)
	friend.Labels = map[string]string{"role": "friend"}
	for _, pod := range []*corev1.Pod{web, friend, other} {
		p.create(c, pod)
	}
	p.make(c, &corev1.Service{ObjectMeta: meta("web"), Spec: corev1.ServiceSpec{Selector: web.Labels,
		Ports: []corev1.ServicePort{{Port: 80, TargetPort: intstr.FromString("http")}}}})
	ready := func() bool {
		for _, cond := range p.pod(c, "web").Status.Conditions {
			if cond.Type == corev1.PodReady && cond.Status == corev1.ConditionTrue {
				return true
			}
		}
		return false
	}
	p.eventually("web is ready", ready)
	// ask writes what web has said, as soon as it has, or nothing after so many seconds. What it said the last time is removed
	// before, since wget begins beside the loop that waits for it. Its own hosts file says that web is the pod itself.
	ask := func(seconds int) string {
		return fmt.Sprintf("rm -f /said; wget -qO- http://web.default/ >/said 2>/dev/null & for i in $(seq %d); do [ -s /said ] && break; sleep 1; done; kill $! 2>/dev/null; cat /said 2>/dev/null || true", seconds)
	}
	reaches := func(from string) (ok bool) {
		p.eventually("exec in "+from, func() bool {
			out, err := p.command("ctl", "exec", from, "--", "sh", "-c", ask(8))
			if err != nil {
				t.Logf("exec in %s: %v: %s", from, err, out)
			}
			ok = strings.Contains(out, "hello")
			return err == nil
		})
		return ok
	}
	for _, pod := range []string{"friend", "other", "web"} {
		p.running(c, pod)
		p.eventually(pod+" reaches web without a policy", func() bool { return reaches(pod) })
	}

	both := []networkingv1.PolicyType{networkingv1.PolicyTypeIngress, networkingv1.PolicyTypeEgress}
	p.make(c, &networkingv1.NetworkPolicy{ObjectMeta: meta("deny"), Spec: networkingv1.NetworkPolicySpec{PolicyTypes: both}})
	p.eventually("nobody reaches web", func() bool { return !reaches("friend") && !reaches("other") })
	if !reaches("web") {
		t.Error("web does not reach itself by its Service")
	}
	http, isWeb, isFriend := intstr.FromString("http"), &metav1.LabelSelector{MatchLabels: web.Labels}, &metav1.LabelSelector{MatchLabels: friend.Labels}
	ports := []networkingv1.NetworkPolicyPort{{Port: &http}}
	p.make(c, &networkingv1.NetworkPolicy{ObjectMeta: meta("in"), Spec: networkingv1.NetworkPolicySpec{PodSelector: *isWeb, PolicyTypes: both[:1],
		Ingress: []networkingv1.NetworkPolicyIngressRule{{From: []networkingv1.NetworkPolicyPeer{{PodSelector: isFriend}}, Ports: ports}}}})
	p.make(c, &networkingv1.NetworkPolicy{ObjectMeta: meta("out"), Spec: networkingv1.NetworkPolicySpec{PodSelector: *isFriend, PolicyTypes: both[1:],
		Egress: []networkingv1.NetworkPolicyEgressRule{{To: []networkingv1.NetworkPolicyPeer{{PodSelector: isWeb}}, Ports: ports}}}})
	p.eventually("the friend reaches web", func() bool { return reaches("friend") })
	if reaches("other") {
		t.Error("the other one reaches web, too")
	}
	conn, err := net.DialTimeout("tcp", p.pod(c, "web").Status.PodIP+":8080", 5*time.Second)
	if err != nil {
		t.Errorf("the node does not reach its pod: %v", err)
	} else {
		conn.Close() //nolint:errcheck // a test's
	}

	// What a pod does first is judged already, and whom it is let in by knows it.
	phase := func(name string) corev1.PodPhase { return p.pod(c, name).Status.Phase }
	script := `[ "$(%s)" = hello ]`
	late, spy := shell("late", fmt.Sprintf(script, ask(20))), shell("spy", fmt.Sprintf(script, ask(5)))
	late.Labels, late.Spec.RestartPolicy, spy.Spec.RestartPolicy = friend.Labels, corev1.RestartPolicyNever, corev1.RestartPolicyNever
	p.create(c, late)
	p.create(c, spy)
	p.eventually("both have tried once", func() bool {
		return (phase("late") == corev1.PodSucceeded || phase("late") == corev1.PodFailed) && (phase("spy") == corev1.PodSucceeded || phase("spy") == corev1.PodFailed)
	})
	if phase("late") != corev1.PodSucceeded || phase("spy") != corev1.PodFailed {
		t.Errorf("late %s, spy %s", phase("late"), phase("spy"))
	}

	p.kill()
	if out, err := exec.Command("nft", "list", "ruleset").CombinedOutput(); err == nil && !strings.Contains(string(out), "chain policy-ingress-default/in {") {
		t.Errorf("a killed daemon leaves no policies behind:\n%s", out)
	}
	c = p.up()
	p.eventually("the friend reaches web after a kill", func() bool { return reaches("friend") })
	if reaches("other") {
		t.Error("the other one reaches web after a kill")
	}
	if !ready() {
		t.Error("web's probe does not reach it")
	}
	for _, name := range []string{"deny", "in", "out"} {
		if _, err := c.Delete(context.Background(), client.Key{Kind: api.NetworkPolicies, Namespace: "default", Name: name}, nil); err != nil {
			t.Fatal(err)
		}
	}
	p.eventually("all reach web again", func() bool { return reaches("other") && reaches("friend") })
	p.eventually("nothing is left of policies", func() bool {
		out, err := exec.Command("nft", "list", "ruleset").CombinedOutput()
		return err != nil || !strings.Contains(string(out), " policy-")
	})
}
