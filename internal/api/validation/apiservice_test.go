package validation

import (
	"strings"
	"testing"

	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"

	"minik8s/internal/api/defaults"
)

func TestAPIServices(t *testing.T) {
	type object = apiregistrationv1.APIService
	remote := func(a *object) {
		a.Spec.Service = &apiregistrationv1.ServiceReference{Namespace: "default", Name: "tides"}
	}
	for _, x := range []struct {
		name   string
		change func(*object)
		says   string // empty: it is valid
	}{
		{"local", func(*object) {}, ""},
		{"by a Service", remote, ""},
		{"by a Service, not verified", func(a *object) { remote(a); a.Spec.InsecureSkipTLSVerify = true }, ""},
		{"another name", func(a *object) { a.Name = "tides" }, "metadata.name: Invalid value: \"tides\": must be `spec.version+\".\"+spec.group`: \"v1.tides.example.org\""},
		{"no group", func(a *object) { a.Name, a.Spec.Group, a.Spec.Version = "v2.", "", "v2" }, "spec.group: Required value"},
		{"the core group", func(a *object) { a.Name, a.Spec.Group = "v1.", "" }, ""},
		{"a bad group", func(a *object) { a.Name, a.Spec.Group = "v1.A_b", "A_b" }, `spec.group: Invalid value: "A_b"`},
		{"a bad version", func(a *object) { a.Name, a.Spec.Version = "1.tides.example.org", "1" }, `spec.version: Invalid value: "1"`},
		{"no priority", func(a *object) { a.Spec.GroupPriorityMinimum = 0 }, "spec.groupPriorityMinimum: Invalid value: 0: must be from 1 to 20000"},
		{"too high", func(a *object) { a.Spec.VersionPriority = 1001 }, "spec.versionPriority: Invalid value: 1001: must be from 1 to 1000"},
		{"a local one with a CA", func(a *object) { a.Spec.CABundle = []byte("x") }, `spec.caBundle: Invalid value: "1 bytes"`},
		{"a local one, not verified", func(a *object) { a.Spec.InsecureSkipTLSVerify = true }, "spec.insecureSkipTLSVerify: Invalid value: true: local"},
		{"no Service's name", func(a *object) { remote(a); a.Spec.Service.Name = "" }, "spec.service.name: Required value"},
		{"no namespace", func(a *object) { remote(a); a.Spec.Service.Namespace = "" }, "spec.service.namespace: Required value"},
		{"a bad port", func(a *object) { remote(a); a.Spec.Service.Port = new(int32(70000)) }, "spec.service.port: Invalid value: 70000"},
		{"verified and not", func(a *object) { remote(a); a.Spec.InsecureSkipTLSVerify, a.Spec.CABundle = true, []byte("x") }, "may not be true if caBundle is present"},
		{"the cluster's own", func(a *object) { remote(a); a.Name, a.Spec.Group = "v1.apps", "apps" }, "spec.service: Forbidden: apps/v1 is the cluster's own"},
	} {
		a := &object{Spec: apiregistrationv1.APIServiceSpec{Group: "tides.example.org", Version: "v1", GroupPriorityMinimum: 100, VersionPriority: 100}}
		a.Name = "v1.tides.example.org"
		x.change(a)
		defaults.APIService(a)
		got := append(ObjectMeta(a, false), APIService(a)...).ToAggregate()
		if x.says == "" && got != nil || x.says != "" && (got == nil || len(got.Errors()) != 1 || !strings.Contains(got.Error(), x.says)) {
			t.Errorf("%s: %v, want %q", x.name, got, x.says)
		}
		if s := a.Spec.Service; s != nil && s.Port == nil {
			t.Errorf("%s: no port", x.name)
		}
	}
}
