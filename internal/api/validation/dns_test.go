package validation

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"minik8s/internal/api/minik8s"
)

func TestDNS(t *testing.T) {
	const web = "service: {name: web, port: 80}"
	for _, x := range []struct {
		spec string
		want []string
	}{
		{"{host: hello.world.minik8s, serviceAddress: 10.8.0.1, paths: [{path: /world, address: 'http://10.6.1.1:80'}, {path: /new/world, address: 'http://10.6.1.2:80'}]}", nil},
		{"{host: a, paths: [{path: /, " + web + "}, {path: /a/, " + web + "}, {path: /a/b, " + web + "}, {path: /ab, address: 'http://web'}, {path: /c, address: 'http://web:8080/'}]}", nil},
		{"{host: a, paths: [{path: /新, address: 'http://[fd00::1]:80'}]}", nil},
		{"{}", []string{"Required spec.host", "Required spec.paths"}},
		{"{host: Upper.Case, paths: [{path: /, " + web + "}]}", []string{"Invalid spec.host"}},
		{"{host: 10.0.0.1, paths: [{path: /, " + web + "}]}", []string{"Invalid spec.host"}},
		{"{host: '*.example', paths: [{path: /, " + web + "}]}", []string{"Invalid spec.host"}},
		{"{host: a b, paths: [{path: /, " + web + "}]}", []string{"Invalid spec.host"}},
		{"{host: a, serviceAddress: 010.8.0.1, paths: [{path: /, " + web + "}]}", []string{"Invalid spec.serviceAddress"}},
		{"{host: a, paths: [{path: /a, " + web + "}, {path: /a/, " + web + "}]}", []string{"Duplicate spec.paths[1].path"}},
		{"{host: a, paths: [{path: /a/, " + web + "}, {path: /a, " + web + "}]}", []string{"Duplicate spec.paths[1].path"}},
		{"{host: a, paths: [{" + web + "}, {path: a, " + web + "}, {path: /a//b, " + web + "}, {path: '/a/../b', " + web + "}, {path: /a%2fb, " + web + "}, {path: '/a?b', " + web + "}, {path: '/a b', " + web + "}]}",
			[]string{"Required spec.paths[0].path", "Invalid spec.paths[1].path", "Invalid spec.paths[2].path", "Invalid spec.paths[3].path", "Invalid spec.paths[4].path", "Invalid spec.paths[5].path", "Invalid spec.paths[6].path"}},
		{"{host: a, paths: [{path: /}, {path: /b, address: 'http://web', " + web + "}]}", []string{"Required spec.paths[0]", "Forbidden spec.paths[1].address"}},
		{"{host: a, paths: [{path: /, service: {}}, {path: /b, service: {name: Web, port: 70000}}]}",
			[]string{"Required spec.paths[0].service.name", "Invalid spec.paths[0].service.port", "Invalid spec.paths[1].service.name", "Invalid spec.paths[1].service.port"}},
	} {
		expect(t, DNS(&minik8s.DNS{ObjectMeta: metav1.ObjectMeta{Name: "d"}, Spec: *decode[minik8s.DNSSpec](t, x.spec)}), x.want...)
	}
}

func TestDNSAddresses(t *testing.T) {
	for address, says := range map[string]string{
		"http://10.6.1.1":               "",
		"http://10.6.1.1:80/":           "",
		"http://dns-world:80":           "",
		"10.6.1.1:80":                   "expected http://HOST or http://HOST:PORT",
		"https://web":                   "expected http://HOST or http://HOST:PORT",
		"http://":                       "expected http://HOST or http://HOST:PORT",
		"http://web/deep":               "and nothing behind it",
		"http://web?q":                  "and nothing behind it",
		"http://me@web":                 "and nothing behind it",
		"http://web:0":                  "expected a number from 1 to 65535",
		"http://web:65536":              "expected a number from 1 to 65535",
		"http://web:":                   "expected a number from 1 to 65535",
		"http://web:http":               "expected http://HOST or http://HOST:PORT",
		"http://example.com":            "the name of a Service: ",
		"http://web.default.svc:80":     "the name of a Service: ",
		"http://127.0.0.1:6443":         "may not be in the loopback range",
		"http://169.254.169.254":        "may not be in the link-local range",
		"http://0.0.0.0":                "may not be unspecified",
		"http://[fe80::1%25eth0]:80":    "must be a valid IP address",
		"http://web\x00":                "expected http://HOST or http://HOST:PORT",
		"http://[::ffff:127.0.0.1]:443": "must not be an IPv4-mapped IPv6 address",
	} {
		errs := DNS(&minik8s.DNS{Spec: minik8s.DNSSpec{Host: "a", Paths: []minik8s.DNSPath{{Path: "/", Address: address}}}})
		switch {
		case says == "" && len(errs) > 0:
			t.Errorf("%s: %v", address, errs)
		case says != "" && (len(errs) == 0 || errs[0].Field != "spec.paths[0].address" || !strings.Contains(errs[0].Detail, says)):
			t.Errorf("%s: %v, want %s", address, errs, says)
		}
	}
}
