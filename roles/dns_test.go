package roles_test

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"minik8s/internal/client"
)

// answersAt reports whether this machine has an address.
func answersAt(t *testing.T, want string) bool {
	t.Helper()
	addrs, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range addrs {
		if strings.HasPrefix(a.String(), want+"/") {
			return true
		}
	}
	return false
}

// A pod finds Services and other pods by their names, short and long, also after the daemon was killed.
func TestNames(t *testing.T) {
	needRoot(t)
	t.Cleanup(func() { // after that of newProcess
		if answersAt(t, "10.96.0.10") {
			t.Error("the address of the DNS is left behind")
		}
	})
	p := newProcess(t)
	c := p.up()
	web := shell("web", "mkdir /w && echo hello > /w/index.html && exec httpd -f -p 8080 -h /w")
	web.Labels = map[string]string{"app": "web"}
	web.Spec.Hostname, web.Spec.Subdomain = "one", "direct"
	p.create(c, web)
	meta := func(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: "default", Name: name} }
	p.make(c, &corev1.Service{ObjectMeta: meta("web"), Spec: corev1.ServiceSpec{Selector: web.Labels,
		Ports: []corev1.ServicePort{{Name: "http", Port: 80, TargetPort: intstr.FromInt32(8080)}}}})
	p.make(c, &corev1.Service{ObjectMeta: meta("direct"), Spec: corev1.ServiceSpec{Selector: web.Labels, ClusterIP: corev1.ClusterIPNone}})
	p.make(c, &corev1.Service{ObjectMeta: meta("alias"), Spec: corev1.ServiceSpec{Type: corev1.ServiceTypeExternalName, ExternalName: "web.default.svc.cluster.local"}})
	asks := func(c client.Interface, name string) {
		t.Helper()
		script := "for at in web web.default web.default.svc web.default.svc.cluster.local alias direct:8080 one.direct:8080; do " +
			`until [ "$(timeout 5 wget -qO- http://$at/)" = hello ]; do echo "$at does not answer"; sleep 0.2; done; done`
		pod := shell(name, script)
		pod.Spec.RestartPolicy = corev1.RestartPolicyNever
		p.create(c, pod)
		p.eventually(fmt.Sprint(name, " has found all of them"), func() bool { return p.pod(c, name).Status.Phase == corev1.PodSucceeded })
	}
	asks(c, "first")
	p.kill()
	c = p.up()
	asks(c, "second")
	host := shell("host", `[ "$(timeout 5 wget -qO- http://web.default.svc.cluster.local/)" = hello ]`)
	host.Spec.HostNetwork, host.Spec.DNSPolicy, host.Spec.RestartPolicy = true, corev1.DNSClusterFirstWithHostNet, corev1.RestartPolicyOnFailure
	p.create(c, host)
	p.eventually("a pod on the host's network has found it", func() bool { return p.pod(c, "host").Status.Phase == corev1.PodSucceeded })
	if !answersAt(t, "10.96.0.10") {
		t.Error("this machine does not have the address of the DNS")
	}
}

// With --host-dns the programs of the machine find Services by their names, too. The file is what it was when the daemon
// ends, and after a kill when clean has been there.
func TestNamesOnTheHost(t *testing.T) {
	needRoot(t)
	file := filepath.Join(t.TempDir(), "resolv.conf")
	const text = "search example\nnameserver 192.0.2.53\n"
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	says := func() string {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	t.Cleanup(func() { // after that of newProcess
		if got := says(); got != text {
			t.Errorf("after clean it is %q", got)
		}
	})
	p := newProcess(t, "--host-dns", "--resolv-conf", file)
	p.up()
	first := func() bool {
		server := strings.Index(says(), "nameserver 10.96.0.10\n")
		return server >= 0 && server < strings.Index(says(), "nameserver 192.0.2.53\n")
	}
	p.eventually("the machine asks the cluster's DNS first", first)
	resolver := &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, network, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, network, "10.96.0.10:53") // the first server of the file
	}}
	if got, err := resolver.LookupHost(t.Context(), "kubernetes.default.svc.cluster.local."); err != nil || !slices.Equal(got, []string{"10.96.0.1"}) {
		t.Error(got, err)
	}
	p.stop()
	if got := says(); got != text {
		t.Errorf("after the daemon's end it is %q", got)
	}
	p.up()
	p.eventually("the machine asks the cluster's DNS first again", first)
	p.kill()
	if !first() || !strings.Contains(says(), "nameserver 192.0.2.53\n") {
		t.Errorf("after a kill it is %q", says())
	}
}
