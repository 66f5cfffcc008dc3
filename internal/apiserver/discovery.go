package apiserver

import (
	"encoding/json"
	"net/http"
	"slices"
	"sort"

	"github.com/labstack/echo/v4"
	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"minik8s/internal/api"
)

func sendJSON(c echo.Context, v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return c.Blob(http.StatusOK, jsonType, append(b, '\n'))
}

func (s *Server) version(c echo.Context) error { return sendJSON(c, s.cfg.Version) }

// issuer is where others learn to check the tokens of service accounts: OpenID Connect Discovery.
func (s *Server) issuer(c echo.Context) error {
	name, keys := s.reg.Issuer()
	if keys == nil {
		return echo.ErrNotFound
	}
	return sendJSON(c, map[string]any{"issuer": name, "jwks_uri": "https://" + s.cfg.Address + "/openid/v1/jwks",
		"response_types_supported": []string{"id_token"}, "subject_types_supported": []string{"public"},
		"id_token_signing_alg_values_supported": []string{"ES256"}})
}

func (s *Server) issuerKeys(c echo.Context) error {
	_, keys := s.reg.Issuer()
	if keys == nil {
		return echo.ErrNotFound
	}
	return c.Blob(http.StatusOK, "application/jwk-set+json", keys)
}

func (s *Server) paths(c echo.Context) error {
	paths := []string{}
	for _, r := range s.echo.Routes() {
		if r.Method == http.MethodGet && !slices.Contains(paths, r.Path) {
			paths = append(paths, r.Path)
		}
	}
	sort.Strings(paths)
	return sendJSON(c, metav1.RootPaths{Paths: paths})
}

// groupVersions are the groups of the table of kinds, in its order, each with its versions.
func (s *Server) groupVersions() (groups []string, versions map[string][]string) {
	versions = map[string][]string{}
	for _, k := range s.reg.Kinds().Served() {
		if !slices.Contains(groups, k.Group) {
			groups = append(groups, k.Group)
		}
		if !slices.Contains(versions[k.Group], k.Version) {
			versions[k.Group] = append(versions[k.Group], k.Version)
		}
	}
	return groups, versions
}

func (s *Server) coreVersions(c echo.Context) error {
	if aggregated(c) {
		return s.aggregate(c, func(group string) bool { return group == "" })
	}
	return sendJSON(c, metav1.APIVersions{TypeMeta: metav1.TypeMeta{Kind: "APIVersions"}, Versions: []string{"v1"},
		ServerAddressByClientCIDRs: []metav1.ServerAddressByClientCIDR{{ClientCIDR: "0.0.0.0/0", ServerAddress: c.Request().Host}}})
}

func apiGroup(name string, versions []string) metav1.APIGroup {
	g := metav1.APIGroup{Name: name}
	for _, v := range versions {
		g.Versions = append(g.Versions, metav1.GroupVersionForDiscovery{GroupVersion: name + "/" + v, Version: v})
	}
	g.PreferredVersion = g.Versions[0]
	return g
}

func (s *Server) groups(c echo.Context) error {
	if aggregated(c) {
		return s.aggregate(c, func(group string) bool { return group != "" })
	}
	list := metav1.APIGroupList{TypeMeta: metav1.TypeMeta{Kind: "APIGroupList", APIVersion: "v1"}, Groups: []metav1.APIGroup{}}
	groups, versions := s.groupVersions()
	for _, g := range groups {
		if g != "" {
			list.Groups = append(list.Groups, apiGroup(g, versions[g]))
		}
	}
	return sendJSON(c, list)
}

func (s *Server) group(c echo.Context) error {
	_, versions := s.groupVersions()
	v := versions[c.Param("group")]
	if v == nil {
		return echo.ErrNotFound
	}
	g := apiGroup(c.Param("group"), v)
	g.TypeMeta = metav1.TypeMeta{Kind: "APIGroup", APIVersion: "v1"}
	return sendJSON(c, g)
}

var allVerbs = []string{"create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"}

func verbsOf(k *api.Kind) []string {
	if k.Verbs != nil {
		return k.Verbs
	}
	return allVerbs
}

// resources is the discovery of one group and version.
func (s *Server) resources(c echo.Context) error {
	group, version := c.Param("group"), c.Param("version")
	if version == "" {
		version = "v1"
	}
	list := metav1.APIResourceList{TypeMeta: metav1.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"}}
	for _, k := range s.reg.Kinds().Served() {
		if k.Group != group || k.Version != version {
			continue
		}
		list.GroupVersion = k.APIVersion()
		list.APIResources = append(list.APIResources, metav1.APIResource{Name: k.Plural, SingularName: k.Singular,
			Namespaced: k.Namespaced, Kind: k.Kind, Verbs: verbsOf(k), ShortNames: k.ShortNames, Categories: k.Categories})
		for _, sub := range subresources(k) {
			list.APIResources = append(list.APIResources, metav1.APIResource{Name: k.Plural + "/" + sub.Name,
				Namespaced: k.Namespaced, Kind: sub.Kind, Group: sub.Group, Version: sub.Version, Verbs: sub.Verbs})
		}
	}
	if list.GroupVersion == "" {
		return echo.ErrNotFound
	}
	return sendJSON(c, list)
}

// subresources is every path below an object, status included.
func subresources(k *api.Kind) []api.Subresource {
	subs := slices.Clone(k.Subresources)
	if k.Status {
		subs = append(subs, api.Subresource{Name: "status", Kind: k.Kind, Verbs: []string{"get", "patch", "update"}})
	}
	slices.SortFunc(subs, func(a, b api.Subresource) int {
		if a.Name < b.Name {
			return -1
		}
		return 1
	})
	return subs
}

func aggregated(c echo.Context) bool {
	return negotiate(c.Request().Header.Get("Accept")).as == "APIGroupDiscoveryList"
}

// aggregate is all of discovery in one answer.
func (s *Server) aggregate(c echo.Context, want func(group string) bool) error {
	list := apidiscoveryv2.APIGroupDiscoveryList{TypeMeta: metav1.TypeMeta{Kind: "APIGroupDiscoveryList", APIVersion: "apidiscovery.k8s.io/v2"},
		Items: []apidiscoveryv2.APIGroupDiscovery{}}
	groups, versions := s.groupVersions()
	for _, g := range groups {
		if !want(g) {
			continue
		}
		item := apidiscoveryv2.APIGroupDiscovery{ObjectMeta: metav1.ObjectMeta{Name: g}}
		for _, v := range versions[g] {
			item.Versions = append(item.Versions, s.discoverVersion(g, v))
		}
		list.Items = append(list.Items, item)
	}
	b, err := json.Marshal(list)
	if err != nil {
		return err
	}
	return c.Blob(http.StatusOK, "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList", append(b, '\n'))
}

func (s *Server) discoverVersion(group, version string) apidiscoveryv2.APIVersionDiscovery {
	out := apidiscoveryv2.APIVersionDiscovery{Version: version, Freshness: apidiscoveryv2.DiscoveryFreshnessCurrent}
	for _, k := range s.reg.Kinds().Served() {
		if k.Group != group || k.Version != version {
			continue
		}
		scope := apidiscoveryv2.ScopeCluster
		if k.Namespaced {
			scope = apidiscoveryv2.ScopeNamespace
		}
		res := apidiscoveryv2.APIResourceDiscovery{Resource: k.Plural, SingularResource: k.Singular, Scope: scope, Verbs: verbsOf(k),
			ShortNames: k.ShortNames, Categories: k.Categories,
			ResponseKind: &metav1.GroupVersionKind{Group: k.Group, Version: k.Version, Kind: k.Kind}}
		for _, sub := range subresources(k) {
			group, version := k.Group, k.Version
			if sub.Version != "" {
				group, version = sub.Group, sub.Version
			}
			res.Subresources = append(res.Subresources, apidiscoveryv2.APISubresourceDiscovery{Subresource: sub.Name, Verbs: sub.Verbs,
				ResponseKind: &metav1.GroupVersionKind{Group: group, Version: version, Kind: sub.Kind}})
		}
		out.Resources = append(out.Resources, res)
	}
	return out
}
