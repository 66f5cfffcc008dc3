package server_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"testing"

	"github.com/miekg/dns"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"minik8s/internal/certs"
	"minik8s/internal/kubelet/server"
	"minik8s/internal/kubelet/server/servertest"
	"minik8s/internal/proxy/report"
)

// here are pods in this process's own network; only web is one.
type here struct{ servertest.NoPods }

func (here) Dial(ctx context.Context, _, pod, network, address string) (net.Conn, error) {
	if pod != "web" {
		return nil, apierrors.NewNotFound(corev1.Resource("pods"), pod)
	}
	var d net.Dialer
	return d.DialContext(ctx, network, address)
}

type inspector struct{}

func (inspector) Inspect(namespace, name string, from netip.Addr) report.Service {
	return report.Service{Node: "n1", Known: true, Why: fmt.Sprint(namespace, " ", name, " ", from)}
}

func post(t *testing.T, c *http.Client, url string) (int, string) {
	t.Helper()
	return do(t, c, http.MethodPost, url)
}

// What the proxy says of a Service is passed on, and mistakes in the question are named.
func TestServices(t *testing.T) {
	ca, err := certs.OpenAuthority(t.TempDir(), "test-ca")
	if err != nil {
		t.Fatal(err)
	}
	var running server.Services
	cfg := server.Config{NodeName: "n1", Pods: func() server.Pods { return here{} }, Services: func() server.Services { return running }}
	f := &fixture{ca, servertest.Start(t, ca, cfg, "n1")}
	admin := f.as(t, ca, "apiserver", "system:masters")
	at := "https://" + f.address + report.Services + "default/web"
	if code, text := get(t, admin, at); code != 503 || !strings.Contains(text, "the proxy of node n1 does not run") {
		t.Error(code, text)
	}
	running = inspector{}
	for query, x := range map[string]struct {
		code int
		says string
	}{"": {200, `"why":"default web invalid IP"`}, "?from=10.244.0.5": {200, "default web 10.244.0.5"}, "?from=x": {400, "from: expected the IPv4 address"}, "?from=::1": {400, "from: "}} {
		if code, text := get(t, admin, at+query); code != x.code || !strings.Contains(text, x.says) {
			t.Errorf("%s: %d %s", query, code, text)
		}
	}
}

// A connection from within a pod is tried, and what came of it is told apart.
func TestDialsAndLookups(t *testing.T) {
	ca, err := certs.OpenAuthority(t.TempDir(), "test-ca")
	if err != nil {
		t.Fatal(err)
	}
	f := &fixture{ca, servertest.Start(t, ca, server.Config{NodeName: "n1", ClusterDomain: "cluster.local", Pods: func() server.Pods { return here{} }}, "n1")}
	admin := f.as(t, f.ca, "apiserver", "system:masters")
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	gone, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	gone.Close()
	pc, err := net.ListenPacket("udp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	names := &dns.Server{PacketConn: pc, Handler: dns.HandlerFunc(func(w dns.ResponseWriter, q *dns.Msg) {
		m := new(dns.Msg).SetReply(q)
		if q.Question[0].Name == "web.default.svc.cluster.local." {
			m.Answer = append(m.Answer, &dns.A{Hdr: dns.RR_Header{Name: q.Question[0].Name, Rrtype: dns.TypeA, Class: dns.ClassINET}, A: net.IPv4(10, 96, 0, 7)})
		} else {
			m.Rcode = dns.RcodeNameError
		}
		w.WriteMsg(m)
	})}
	go names.ActivateAndServe()
	defer names.Shutdown()
	for _, x := range []struct {
		path string
		code int
		want func(report.Attempt) bool
		says string
	}{
		{"dial/default/web?network=tcp&address=" + l.Addr().String(), 200, func(a report.Attempt) bool { return a.Done && a.Error == "" }, ""},
		{"dial/default/web?network=tcp&address=" + gone.Addr().String(), 200, func(a report.Attempt) bool { return !a.Done && a.Refused && !a.Late }, "refused"},
		{"dial/default/other?network=tcp&address=" + l.Addr().String(), 404, nil, "NotFound"},
		{"dial/default/web?network=udp&address=" + l.Addr().String(), 400, nil, "network: expected tcp"},
		{"dial/default/web?network=tcp&address=name:80", 400, nil, "address: expected"},
		{"dial/default/web?network=tcp&address=127.0.0.1:0", 400, nil, "address: expected"},
		{"lookup/default/web?name=web.default.svc.cluster.local.&address=" + pc.LocalAddr().String(), 200,
			func(a report.Attempt) bool { return a.Done && fmt.Sprint(a.Addresses) == "[10.96.0.7]" }, ""},
		{"lookup/default/web?name=nobody.default.svc.cluster.local.&address=" + pc.LocalAddr().String(), 200, func(a report.Attempt) bool { return !a.Done && !a.Late }, "no such host"},
		{"lookup/default/web?address=" + pc.LocalAddr().String(), 400, nil, "name: expected"},
		{"lookup/default/web?name=x.", 400, nil, "address: expected"},
		{"lookup/default/web?name=web.default.svc&address=" + pc.LocalAddr().String(), 200,
			func(a report.Attempt) bool {
				return a.Done && a.Name == "web.default.svc.cluster.local." && a.Asked.String() == pc.LocalAddr().String()
			}, ""},
		{"lookup/default/other?name=x.&address=" + pc.LocalAddr().String(), 404, nil, "NotFound"},
	} {
		code, text := post(t, admin, "https://"+f.address+"/minik8s/"+x.path)
		var a report.Attempt
		if code == 200 {
			if err := json.Unmarshal([]byte(text), &a); err != nil {
				t.Fatal(text, err)
			}
		}
		if code != x.code || !strings.Contains(text, x.says) || x.want != nil && !x.want(a) {
			t.Errorf("%s: %d %s", x.path, code, text)
		}
	}
}
