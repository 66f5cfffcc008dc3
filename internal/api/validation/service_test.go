package validation_test

import (
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"minik8s/internal/api/defaults"
	"minik8s/internal/api/validation"
)

// Of objects with odd fields ours refuses the same ones as upstream's validation, for the same fields and in the same sense.
// testdata/oracle/services makes the files.
func asUpstream[T any, P interface {
	*T
	DeepCopy() P
}](t *testing.T, file string, ours func(P) field.ErrorList) {
	data, err := os.ReadFile("testdata/" + file)
	if err != nil {
		t.Fatal(err)
	}
	var all []struct {
		Object  P
		Refused []string
	}
	if err := json.Unmarshal(data, &all); err != nil || len(all) < 400 {
		t.Fatal(len(all), err)
	}
	refused := 0
	for i, v := range all {
		var got []string
		for _, e := range ours(v.Object.DeepCopy()) {
			got = append(got, e.Field+" "+string(e.Type))
		}
		if len(v.Refused) > 0 {
			refused++
		}
		if g, w := same(got), same(v.Refused); !slices.Equal(g, w) {
			t.Errorf("%d: ours %q, upstream's %q: %+v", i, g, w, v.Object)
		}
	}
	if refused < 100 || refused == len(all) {
		t.Errorf("upstream refuses %d of %d", refused, len(all))
	}
}

func TestServicesAsUpstream(t *testing.T) {
	asUpstream(t, "services.json", func(svc *corev1.Service) field.ErrorList {
		defaults.Service(svc)
		return append(validation.ObjectMeta(svc, true), validation.Service(svc)...)
	})
}

func TestNetworkingAsUpstream(t *testing.T) {
	asUpstream(t, "ingresses.json", func(in *networkingv1.Ingress) field.ErrorList {
		return slices.Concat(validation.ObjectMeta(in, true), validation.Ingress(in), validation.IngressCreate(in))
	})
	asUpstream(t, "ingressclasses.json", func(c *networkingv1.IngressClass) field.ErrorList {
		defaults.IngressClass(c)
		return append(validation.ObjectMeta(c, false), validation.IngressClass(c)...)
	})
	asUpstream(t, "networkpolicies.json", func(p *networkingv1.NetworkPolicy) field.ErrorList {
		defaults.NetworkPolicy(p)
		return append(validation.ObjectMeta(p, true), validation.NetworkPolicy(p)...)
	})
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
