package aggregator

import (
	"cmp"
	"context"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/version"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"

	"minik8s/internal/api"
)

// GroupVersions implements discovery.Others. The order is that of the priorities in the APIServices.
func (a *Aggregator) GroupVersions() []schema.GroupVersion {
	specs := map[schema.GroupVersion]*apiregistrationv1.APIServiceSpec{}
	for gv := range a.local {
		specs[gv] = &api.LocalAPIService(gv).Spec
	}
	for _, obj := range a.cfg.Registry.AllCached(api.APIServices) {
		s := &obj.(*apiregistrationv1.APIService).Spec
		gv := schema.GroupVersion{Group: s.Group, Version: s.Version}
		if specs[gv] != nil || s.Service != nil && !a.cfg.Registry.Kinds().Has(gv) {
			specs[gv] = s
		}
	}
	groups, out := map[string]int32{}, make([]schema.GroupVersion, 0, len(specs))
	for gv, s := range specs {
		groups[gv.Group] = max(groups[gv.Group], s.GroupPriorityMinimum)
		out = append(out, gv)
	}
	slices.SortFunc(out, func(x, y schema.GroupVersion) int {
		return cmp.Or(cmp.Compare(groups[y.Group], groups[x.Group]), cmp.Compare(x.Group, y.Group),
			cmp.Compare(specs[y].VersionPriority, specs[x].VersionPriority), version.CompareKubeAwareVersionStrings(y.Version, x.Version))
	})
	return out
}

// Resources implements discovery.Others.
func (a *Aggregator) Resources(ctx context.Context, gv schema.GroupVersion) (list []metav1.APIResource, current bool) {
	if to := a.service(gv); to != nil {
		return a.remoteResources(ctx, to)
	}
	if g := a.local[gv]; g != nil {
		if g.Discover != nil {
			return g.Discover(ctx)
		}
		return g.Resources(), true
	}
	return nil, false
}
