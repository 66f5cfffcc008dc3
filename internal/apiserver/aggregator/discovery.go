package aggregator

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupVersions implements discovery.Others.
func (a *Aggregator) GroupVersions() []schema.GroupVersion {
	var out []schema.GroupVersion
	for i := range a.cfg.Local {
		out = append(out, schema.GroupVersion{Group: a.cfg.Local[i].Group, Version: a.cfg.Local[i].Version})
	}
	return out
}

// Resources implements discovery.Others.
func (a *Aggregator) Resources(_ context.Context, gv schema.GroupVersion) (list []metav1.APIResource, current bool) {
	if g := a.local[gv]; g != nil {
		return g.Resources(), true
	}
	return nil, false
}
