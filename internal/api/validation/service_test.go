package validation_test

import (
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"minik8s/internal/api/defaults"
	"minik8s/internal/api/validation"
)

// Of Services with odd fields ours refuses the same ones as upstream's validation, for the same fields and in the same
// sense. testdata/oracle/services makes the file.
func TestServicesAsUpstream(t *testing.T) {
	data, err := os.ReadFile("testdata/services.json")
	if err != nil {
		t.Fatal(err)
	}
	var all []struct {
		Service *corev1.Service
		Refused []string
	}
	if err := json.Unmarshal(data, &all); err != nil || len(all) < 400 {
		t.Fatal(len(all), err)
	}
	refused := 0
	for i, v := range all {
		svc := v.Service.DeepCopy()
		defaults.Service(svc)
		var got []string
		for _, e := range append(validation.ObjectMeta(svc, true), validation.Service(svc)...) {
			got = append(got, e.Field+" "+string(e.Type))
		}
		if len(v.Refused) > 0 {
			refused++
		}
		if g, w := same(got), same(v.Refused); !slices.Equal(g, w) {
			t.Errorf("%d: ours %q, upstream's %q: %+v", i, g, w, v.Service)
		}
	}
	if refused < 100 || refused == len(all) {
		t.Errorf("upstream refuses %d of %d", refused, len(all))
	}
}

// same leaves out what is known to differ: there addresses and ports are given before validation, so only there a health
// check port can be missing; and one path is spelled in another way.
func same(errs []string) []string {
	var out []string
	for _, e := range errs {
		if e == "spec.healthCheckNodePort FieldValueRequired" {
			continue
		}
		out = append(out, strings.Replace(e, "LoadBalancerSourceRanges", "loadBalancerSourceRanges", 1))
	}
	slices.Sort(out)
	return slices.Compact(out)
}
