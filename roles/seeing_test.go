package roles_test

import (
	"bufio"
	"context"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// says runs a program to its end and returns all that it says.
func says(t *testing.T, name string, args ...string) (string, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	out, err := exec.CommandContext(ctx, name, args...).CombinedOutput()
	return string(out), err
}

// serving starts a program that opens a port, until the test ends, and returns the address in the line that has a word.
func serving(t *testing.T, word, name string, args ...string) string {
	t.Helper()
	cmd := exec.Command(name, args...)
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cmd.Process.Kill() //nolint:errcheck // it may have ended
		cmd.Wait()         //nolint:errcheck // it was killed
	})
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		for _, w := range strings.Fields(lines.Text()) {
			if strings.Contains(lines.Text(), word) && strings.HasPrefix(w, "127.0.0.1:") {
				return w
			}
		}
	}
	t.Fatalf("%s %s has opened no port", name, args)
	return ""
}

// Services are seen as users see them: by stock kubectl and by ctl, through the API's proxies and as the kernel leads them.
func TestSeeing(t *testing.T) {
	needRoot(t)
	p := newProcess(t)
	c := p.up()
	meta := func(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: "default", Name: name} }
	web := shell("web", "mkdir -p /w && echo hello > /w/index.html && exec httpd -f -p 8080 -h /w")
	web.Labels = map[string]string{"app": "web"}
	web.Spec.Containers[0].Ports = []corev1.ContainerPort{{Name: "http", ContainerPort: 8080}}
	p.create(c, web)
	unready := shell("unready", forever)
	unready.Labels = web.Labels
	unready.Spec.Containers[0].Ports = web.Spec.Containers[0].Ports
	unready.Spec.Containers[0].ReadinessProbe = &corev1.Probe{PeriodSeconds: 1, ProbeHandler: corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Port: intstr.FromInt32(8080)}}}
	p.create(c, unready)
	p.create(c, shell("client", forever))
	service := func(name string, target intstr.IntOrString) {
		p.make(c, &corev1.Service{ObjectMeta: meta(name), Spec: corev1.ServiceSpec{Selector: web.Labels, Ports: []corev1.ServicePort{{Name: "http", Port: 80, TargetPort: target}}}})
	}
	service("web", intstr.FromString("http"))
	service("wrong", intstr.FromInt32(9999))
	p.make(c, &networkingv1.NetworkPolicy{ObjectMeta: meta("who"), Spec: networkingv1.NetworkPolicySpec{PodSelector: metav1.LabelSelector{MatchLabels: web.Labels},
		PolicyTypes: []networkingv1.PolicyType{networkingv1.PolicyTypeIngress}, Ingress: []networkingv1.NetworkPolicyIngressRule{{}}}})
	p.running(c, "web")
	p.running(c, "client")
	daemon, err := built()
	if err != nil {
		t.Fatal(err)
	}
	ctl := func(args ...string) []string { return append([]string{"ctl", "--data-dir", p.dir}, args...) }
	node := p.pod(c, "web").Spec.NodeName
	const proxied = "/api/v1/namespaces/default/services/web:http/proxy/"

	expect := func(program string, args []string, fails bool, wants ...string) {
		t.Helper()
		var out string
		var err error
		p.eventually(program+" "+strings.Join(args, " ")+" says "+strings.Join(wants, ", "), func() bool {
			out, err = says(t, program, args...)
			for _, w := range wants {
				if !strings.Contains(out, w) {
					return false
				}
			}
			return true
		})
		if (err != nil) != fails {
			t.Errorf("%s: %v\n%s", args, err, out)
		}
	}
	ip := p.pod(c, "web").Status.PodIP
	expect(daemon, ctl("why", "service", "web"), false, "service/web leads to 1 of the 2 pods that it selects", "web  "+ip+":8080 on "+node,
		"unready  is not ready: the readiness probe of container c (GET :8080/) does not succeed; Readiness probe failed", "networkpolicy.networking.k8s.io/who says who may reach unready, web", "agrees on "+node)
	expect(daemon, ctl("trace", "client", "web"), false, "default/client, "+p.pod(c, "client").Status.PodIP+" on "+node, "web.default.svc.cluster.local is 10.96.",
		"prerouting: ip daddr . meta l4proto . th dport vmap @services", "svc-default/web/tcp/http: dnat ip to", ip+":8080; pod web on "+node+"; policies that say who may call it: who; listens; reached directly",
		"connected within", ", to "+ip+":8080 (web)", "is open")
	expect(daemon, ctl("trace", "client", "wrong:80"), true, "nobody listens on its port 9999", `stops at the step "endpoints"`)
	expect(daemon, ctl("trace", "client", "svc/kube-dns", "-n", "default"), true, "not found in namespace")
	expect(daemon, ctl("trace", "default/client", "kube-system/kube-dns:dns"), false, "UDP was not tried", "nothing is known to stop it")
	expect(daemon, ctl("cluster-info"), false, "The control plane is running at", "DNS is running at")
	at := serving(t, "Starting to serve", daemon, ctl("proxy", "--port=0")...)
	if got := answer(at + proxied); got != "hello" {
		t.Errorf("by ctl proxy: %q", got)
	}
	if got := answer(serving(t, "Forwarding", daemon, ctl("port-forward", "svc/web", ":http")...)); got != "hello" {
		t.Errorf("by ctl port-forward: %q", got)
	}

	kubectl, err := exec.LookPath("kubectl")
	if err != nil {
		t.Skip("kubectl is not installed")
	}
	k := func(args ...string) []string {
		return append([]string{"--kubeconfig", filepath.Join(p.dir, "admin.kubeconfig")}, args...)
	}
	expect(kubectl, k("get", "--raw", proxied), false, "hello")
	expect(kubectl, k("get", "--raw", "/api/v1/nodes/"+node+"/proxy/pods"), false, `"name":"web"`)
	expect(kubectl, k("get", "--raw", "/api/v1/nodes/https:"+node+":6443/proxy/version"), false, "gitVersion")
	// There the API server is nobody: it shows no certificate.
	expect(kubectl, k("get", "--raw", "/api/v1/nodes/https:"+node+":6443/proxy/api/v1/secrets"), true, "must be logged in")
	expect(kubectl, k("cluster-info"), false, "is running at", "kube-dns:dns/proxy")
	if got := answer(serving(t, "Starting to serve", kubectl, k("proxy", "--port=0")...) + proxied); got != "hello" {
		t.Errorf("by kubectl proxy: %q", got)
	}
	if got := answer(serving(t, "Forwarding", kubectl, k("port-forward", "--address=127.0.0.1", "svc/web", ":http")...)); got != "hello" {
		t.Errorf("by kubectl port-forward: %q", got)
	}
	for _, sa := range []string{"system:serviceaccount:default:default"} {
		for _, path := range []string{proxied, "/api/v1/nodes/" + node + "/proxy/pods", "/api/v1/nodes/" + node + "/proxy/minik8s/services/default/web"} {
			expect(kubectl, k("get", "--as", sa, "--raw", path), true, "Forbidden")
		}
	}
}
