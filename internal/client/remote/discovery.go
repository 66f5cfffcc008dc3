package remote

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"
	"k8s.io/apimachinery/pkg/runtime"

	"minik8s/internal/api"
)

// discoveryType asks for all of discovery in one answer (KEP-3352).
const discoveryType = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"

// Kinds asks the server which kinds it serves, and returns those whose objects can be listed, each group in its
// preferred version. Kinds that are compiled in are the rows of package api; objects of the others are documents.
func (c *Client) Kinds(ctx context.Context) ([]*api.Kind, error) {
	var kinds []*api.Kind
	for _, path := range []string{"/api", "/apis"} {
		data, err := c.read(ctx, request{method: http.MethodGet, path: path, accept: discoveryType})
		if err != nil {
			return nil, err
		}
		var list apidiscoveryv2.APIGroupDiscoveryList
		if err := json.Unmarshal(data, &list); err != nil || list.Kind != "APIGroupDiscoveryList" {
			return nil, fmt.Errorf("the server's answer at %s is no APIGroupDiscoveryList: %v", path, err)
		}
		for _, group := range list.Items {
			seen := map[string]bool{}
			for _, version := range group.Versions {
				for i := range version.Resources {
					r := &version.Resources[i]
					if k := kindOf(group.Name, version.Version, r); k != nil && !seen[k.Plural] {
						seen[k.Plural] = true
						kinds = append(kinds, k)
					}
				}
			}
		}
	}
	return kinds, nil
}

// kindOf returns the kind that a resource of discovery is; nil if its objects are not stored under this name.
func kindOf(group, version string, r *apidiscoveryv2.APIResourceDiscovery) *api.Kind {
	if r.ResponseKind == nil {
		return nil
	}
	k := &api.Kind{Group: group, Version: version, Kind: r.ResponseKind.Kind, Plural: r.Resource, Singular: r.SingularResource,
		ShortNames: r.ShortNames, Categories: r.Categories, Namespaced: r.Scope == apidiscoveryv2.ScopeNamespace, Verbs: r.Verbs}
	for _, known := range api.Builtin() {
		if known.GVK() == k.GVK() {
			if known.Stored() {
				return known
			}
			return nil
		}
	}
	if !k.Allows("list") {
		return nil
	}
	if k.Singular == "" {
		k.Singular = strings.ToLower(k.Kind)
	}
	k.New = func() api.Object { return newDocument(k) }
	k.NewList = func() runtime.Object { return &documentList{kind: k} }
	return k
}
