package ctl

import (
	"strings"
	"testing"

	"minik8s/internal/api/minik8s"
)

// ctl knows the kind by all of its words, takes both seeds' manifests, and shows host, address and paths.
func TestDNS(t *testing.T) {
	f := newFake(t)
	for _, file := range []string{"a-dns", "x-dns"} {
		if got := f.ctl("", "create", "-f", "../../testdata/dialects/"+file+".yaml"); got.code != 0 || !strings.Contains(got.out, "created") {
			t.Fatalf("%s: %+v", file, got)
		}
	}
	d := f.get("/apis/minik8s.io/v1/namespaces/default/dnses/dns-test").(*minik8s.DNS)
	if d.Spec.Host != "hello.world.minik8s" || d.Spec.ServiceAddress != "10.8.0.1" {
		t.Errorf("%+v", d.Spec)
	}
	for _, word := range []string{"dns", "dnses", "DNS", "dnses.minik8s.io"} {
		if got := f.ctl("", "get", word); got.code != 0 || !strings.Contains(got.out, "dns-test") || !strings.Contains(got.out, "nginx-dns") {
			t.Errorf("%s: %+v", word, got)
		}
	}
	got := f.ctl("", "describe", "dns", "dns-test").out
	for _, want := range []string{"UID:", "hello.world.minik8s", "10.8.0.1", "/new/world", "-> http://10.6.1.2:80"} {
		if !strings.Contains(got, want) {
			t.Errorf("describe does not show %s:\n%s", want, got)
		}
	}
	if got := f.ctl("", "describe", "dns", "nginx-dns").out; !strings.Contains(got, "-> service nginx-service:8080") {
		t.Error(got)
	}
	if got := f.ctl("", "describe", "dns").out; !strings.Contains(got, "hello.world.minik8s") || !strings.Contains(got, "test.nginx") {
		t.Error(got)
	}
	if got := f.ctl("", "delete", "dns", "dns-test"); got.code != 0 {
		t.Errorf("%+v", got)
	}
	// As the second seed system has it.
	const manifest = "../../testdata/dialects/a-dns.yaml"
	if got := f.ctl("", "create", "service", "-f", manifest); got.code == 0 || !strings.Contains(got.text, "it is a DNS, where Service was said") {
		t.Errorf("%+v", got)
	}
	for _, command := range []string{"create dns -f " + manifest, "del dns dns-test"} {
		if got := f.ctl("", strings.Fields(command)...); got.code != 0 || !strings.Contains(got.out, "dns-test") {
			t.Errorf("%s: %+v", command, got)
		}
	}
}
