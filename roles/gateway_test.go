package roles_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"minik8s/internal/api"
	"minik8s/internal/api/minik8s"
	"minik8s/internal/client"
)

// certificate is a Secret with a certificate for a host.
func certificate(t *testing.T, name, host string) *corev1.Secret {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), DNSNames: []string{host}, NotAfter: time.Now().Add(time.Hour)}
	cert, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}, Type: corev1.SecretTypeTLS, Data: map[string][]byte{
		corev1.TLSCertKey:       pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert}),
		corev1.TLSPrivateKeyKey: pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private})}}
}

// Hosts and paths lead to Services: those of DNS objects at their own addresses, by name in a pod; those of Ingresses at the
// machine's, also by TLS. The daemon's death changes nothing that lasts.
func TestPaths(t *testing.T) {
	needRoot(t)
	t.Cleanup(func() { // after that of newProcess
		if answersAt(t, "10.8.0.1") {
			t.Error("the address of a DNS object is left behind")
		}
	})
	p := newProcess(t)
	c := p.up()
	meta := func(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: "default", Name: name} }
	for _, name := range []string{"one", "two"} {
		pod := shell(name, fmt.Sprintf("mkdir -p /w/deep && echo %s > /w/index.html && echo %s deep > /w/deep/index.html && exec httpd -f -p 8080 -h /w", name, name))
		pod.Labels = map[string]string{"app": name}
		p.create(c, pod)
		p.make(c, &corev1.Service{ObjectMeta: meta(name), Spec: corev1.ServiceSpec{Selector: pod.Labels, Ports: []corev1.ServicePort{{Port: 80, TargetPort: intstr.FromInt32(8080)}}}})
	}
	p.make(c, &minik8s.DNS{ObjectMeta: meta("paths"), Spec: minik8s.DNSSpec{Host: "hello.world.minik8s", ServiceAddress: "10.8.0.1", Paths: []minik8s.DNSPath{
		{Path: "/world", Service: &minik8s.DNSServiceRef{Name: "one", Port: 80}}, {Path: "/new/world/", Address: "http://two:80"},
		{Path: "/gone", Service: &minik8s.DNSServiceRef{Name: "gone", Port: 80}}}}})
	// A Service that claims the address, and that of the DNS, takes neither.
	p.make(c, &corev1.Service{ObjectMeta: meta("thief"), Spec: corev1.ServiceSpec{Selector: map[string]string{"app": "two"}, ExternalIPs: []string{"10.8.0.1", "10.96.0.10"},
		Ports: []corev1.ServicePort{{Name: "web", Port: 80, TargetPort: intstr.FromInt32(8080)}, {Name: "dns", Protocol: corev1.ProtocolUDP, Port: 53, TargetPort: intstr.FromInt32(8080)}}}})
	prefix := networkingv1.PathTypePrefix
	p.make(c, certificate(t, "cert", "www.example.test"))
	p.make(c, &networkingv1.Ingress{ObjectMeta: meta("web"), Spec: networkingv1.IngressSpec{TLS: []networkingv1.IngressTLS{{Hosts: []string{"www.example.test"}, SecretName: "cert"}},
		Rules: []networkingv1.IngressRule{{Host: "www.example.test", IngressRuleValue: networkingv1.IngressRuleValue{HTTP: &networkingv1.HTTPIngressRuleValue{
			Paths: []networkingv1.HTTPIngressPath{{Path: "/", PathType: &prefix, Backend: networkingv1.IngressBackend{Service: &networkingv1.IngressServiceBackend{Name: "two", Port: networkingv1.ServiceBackendPort{Number: 80}}}}}}}}}}})

	condition := func(status metav1.ConditionStatus, says string) {
		t.Helper()
		p.eventually("the condition of the DNS object "+string(status), func() bool {
			d, err := client.Get[*minik8s.DNS](t.Context(), c, client.Key{Kind: api.DNSes, Namespace: "default", Name: "paths"})
			if err != nil {
				return false
			}
			ready := apimeta.FindStatusCondition(d.Status.Conditions, "Ready")
			return ready != nil && ready.Status == status && strings.Contains(ready.Message, says)
		})
	}
	condition(metav1.ConditionFalse, "/gone: Service default/gone does not exist")
	p.eventually("the Ingress has the machine's address", func() bool {
		in, err := client.Get[*networkingv1.Ingress](t.Context(), c, client.Key{Kind: api.Ingresses, Namespace: "default", Name: "web"})
		return err == nil && len(in.Status.LoadBalancer.Ingress) == 1 && in.Status.LoadBalancer.Ingress[0].IP == "192.0.2.1"
	})

	// get asks an address, whatever the host's name is.
	get := func(at, url string) (int, string) {
		var subject []string
		tr := &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, network, at)
		}, TLSClientConfig: &tls.Config{InsecureSkipVerify: true, VerifyConnection: func(s tls.ConnectionState) error { //nolint:gosec // the test compares the name
			subject = s.PeerCertificates[0].DNSNames
			return nil
		}}}
		resp, err := (&http.Client{Transport: tr, Timeout: 10 * time.Second}).Get(url)
		if err != nil {
			return 0, err.Error()
		}
		defer resp.Body.Close() //nolint:errcheck // it was read
		body, err := io.ReadAll(resp.Body)
		if err != nil {
			return 0, err.Error()
		}
		return resp.StatusCode, strings.Join(append(subject, strings.TrimSpace(string(body))), " ")
	}
	for _, start := range []func(){func() {}, func() { p.kill(); c = p.up() }} {
		start()
		for _, x := range []struct {
			at, url string
			code    int
			says    string
		}{
			{"10.8.0.1:80", "http://hello.world.minik8s/world", 200, "one"},
			{"10.8.0.1:80", "http://hello.world.minik8s/world/deep/", 200, "one deep"},
			{"10.8.0.1:80", "http://hello.world.minik8s/new/world", 200, "two"},
			{"10.8.0.1:80", "http://hello.world.minik8s/worldwide", 404, ""},
			{"10.8.0.1:80", "http://hello.world.minik8s/gone", 503, ""},
			{"192.0.2.1:80", "http://www.example.test/deep/", 200, "two deep"},
			{"192.0.2.1:443", "https://www.example.test/", 200, "www.example.test two"},
			{"127.0.0.1:80", "http://www.example.test/", 200, "two"},
			{"192.0.2.1:80", "http://hello.world.minik8s/world", 404, ""},
		} {
			var code int
			var body string
			p.eventually(x.url, func() bool {
				code, body = get(x.at, x.url)
				return code == x.code && (x.says == "" || body == x.says)
			})
		}
	}
	// The gateway has asked for the certificate, so it follows it. Nothing reads it again by the clock, so this comes soon or never.
	if _, err := c.Update(t.Context(), certificate(t, "cert", "renewed.example.test"), client.WriteOptions{}); err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(time.Millisecond) {
		_, body := get("192.0.2.1:443", "https://www.example.test/")
		if body == "renewed.example.test two" {
			break
		}
		if time.Now().After(end) {
			t.Fatal("the renewed certificate is not shown: ", body)
		}
	}
	pod := shell("asks", `until [ "$(timeout 5 wget -qO- http://hello.world.minik8s:80/new/world)" = two ]; do sleep 0.2; done`)
	pod.Spec.RestartPolicy = corev1.RestartPolicyNever
	p.create(c, pod)
	p.eventually("a pod has found it by its name", func() bool { return p.pod(c, "asks").Status.Phase == corev1.PodSucceeded })
	p.make(c, &corev1.Service{ObjectMeta: meta("gone"), Spec: corev1.ServiceSpec{Selector: map[string]string{"app": "one"}, Ports: []corev1.ServicePort{{Port: 80, TargetPort: intstr.FromInt32(8080)}}}})
	condition(metav1.ConditionTrue, "/gone")
}
