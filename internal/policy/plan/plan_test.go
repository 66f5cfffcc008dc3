package plan

import (
	"testing"

	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// A pod whose namespace is not known yet is nobody's peer by what its namespace lacks.
func TestUnknownNamespace(t *testing.T) {
	lacks := &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "evil", Operator: metav1.LabelSelectorOpDoesNotExist}}}
	for name, s := range map[string]*metav1.LabelSelector{"all": {}, "those without a label": lacks} {
		p, err := peersOf("x", networkingv1.NetworkPolicyPeer{NamespaceSelector: s})
		if err != nil {
			t.Fatal(err)
		}
		if p.Include("y", nil, nil) || !p.Include("y", labels.Set{}, nil) {
			t.Errorf("%s: unknown %t, without labels %t", name, p.Include("y", nil, nil), p.Include("y", labels.Set{}, nil))
		}
	}
}
