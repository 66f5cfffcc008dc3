package discovery

import (
	"cmp"
	"context"
	"strings"

	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// discoverVersion returns a group and version in the aggregated form.
func (h Handler) discoverVersion(ctx context.Context, gv schema.GroupVersion) apidiscoveryv2.APIVersionDiscovery {
	list, current := h.kinds(gv), true
	if len(list) == 0 {
		list, current = h.Others.Resources(ctx, gv)
	}
	out := apidiscoveryv2.APIVersionDiscovery{Version: gv.Version, Freshness: apidiscoveryv2.DiscoveryFreshnessCurrent, Resources: aggregated(gv, list)}
	if !current {
		out.Freshness = apidiscoveryv2.DiscoveryFreshnessStale
	}
	return out
}

// aggregated brings the subresources of a list below their resources. A subresource whose resource is not in the list
// gets one without verbs, as in Kubernetes.
func aggregated(gv schema.GroupVersion, list []metav1.APIResource) (out []apidiscoveryv2.APIResourceDiscovery) {
	at := map[string]int{} // a group may have thousands
	for _, r := range list {
		name, sub, below := strings.Cut(r.Name, "/")
		kind := &metav1.GroupVersionKind{Group: cmp.Or(r.Group, gv.Group), Version: cmp.Or(r.Version, gv.Version), Kind: r.Kind}
		i, have := at[name]
		if !have {
			i = len(out)
			at[name] = i
			out = append(out, apidiscoveryv2.APIResourceDiscovery{Resource: name, Scope: scope(r), ResponseKind: &metav1.GroupVersionKind{}})
		}
		to := &out[i]
		if below {
			to.Subresources = append(to.Subresources, apidiscoveryv2.APISubresourceDiscovery{Subresource: sub, Verbs: r.Verbs, ResponseKind: kind})
			continue
		}
		to.SingularResource, to.Scope, to.Verbs = r.SingularName, scope(r), r.Verbs
		to.ShortNames, to.Categories, to.ResponseKind = r.ShortNames, r.Categories, kind
	}
	return out
}

func scope(r metav1.APIResource) apidiscoveryv2.ResourceScope {
	if r.Namespaced {
		return apidiscoveryv2.ScopeNamespace
	}
	return apidiscoveryv2.ScopeCluster
}
