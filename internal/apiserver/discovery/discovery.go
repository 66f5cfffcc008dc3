package discovery

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strings"

	"github.com/labstack/echo/v4"
	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"minik8s/internal/api"
	"minik8s/internal/apiserver/encoding"
)

// Others are groups that are served beside the kinds of the table.
type Others interface {
	// GroupVersions returns them in the order of discovery.
	GroupVersions() []schema.GroupVersion
	// Resources returns what is in one of them. It is not current if whoever serves the group did not say so now: then
	// it is what was known last, which may be nothing.
	Resources(ctx context.Context, gv schema.GroupVersion) (list []metav1.APIResource, current bool)
}

// Handler serves the discovery of the kinds and of other groups.
type Handler struct {
	Kinds *api.Table
	// Others may be nil: there are none.
	Others Others
	// Address is the host and port under which clients reach the API; empty: under which this one does.
	Address string
}

// CoreVersions serves /api.
func (h Handler) CoreVersions(c echo.Context) error {
	if wantsAggregated(c) {
		return h.aggregate(c, func(group string) bool { return group == "" })
	}
	address := h.Address
	if address == "" {
		address = c.Request().Host
	}
	return send(c, metav1.APIVersions{TypeMeta: metav1.TypeMeta{Kind: "APIVersions"}, Versions: []string{"v1"},
		ServerAddressByClientCIDRs: []metav1.ServerAddressByClientCIDR{{ClientCIDR: "0.0.0.0/0", ServerAddress: address}}})
}

// groupVersions returns all groups, and the versions of each, the preferred one first.
func (h Handler) groupVersions() (groups []string, versions map[string][]string) {
	groups, versions = h.Kinds.GroupVersions()
	for _, gv := range h.others() {
		if !slices.Contains(groups, gv.Group) {
			groups = append(groups, gv.Group)
		}
		if !slices.Contains(versions[gv.Group], gv.Version) {
			versions[gv.Group] = append(versions[gv.Group], gv.Version)
		}
	}
	return groups, versions
}

func (h Handler) others() []schema.GroupVersion {
	if h.Others == nil {
		return nil
	}
	return h.Others.GroupVersions()
}

func apiGroup(name string, versions []string) metav1.APIGroup {
	g := metav1.APIGroup{Name: name}
	for _, v := range versions {
		g.Versions = append(g.Versions, metav1.GroupVersionForDiscovery{GroupVersion: name + "/" + v, Version: v})
	}
	g.PreferredVersion = g.Versions[0]
	return g
}

// Groups serves /apis.
func (h Handler) Groups(c echo.Context) error {
	if wantsAggregated(c) {
		return h.aggregate(c, func(group string) bool { return group != "" })
	}
	list := metav1.APIGroupList{TypeMeta: metav1.TypeMeta{Kind: "APIGroupList", APIVersion: "v1"}, Groups: []metav1.APIGroup{}}
	groups, versions := h.groupVersions()
	for _, g := range groups {
		if g != "" {
			list.Groups = append(list.Groups, apiGroup(g, versions[g]))
		}
	}
	return send(c, list)
}

// Group serves /apis/GROUP.
func (h Handler) Group(c echo.Context) error {
	_, versions := h.groupVersions()
	v := versions[c.Param("group")]
	if v == nil {
		return echo.ErrNotFound
	}
	g := apiGroup(c.Param("group"), v)
	g.TypeMeta = metav1.TypeMeta{Kind: "APIGroup", APIVersion: "v1"}
	return send(c, g)
}

// Resources serves the discovery of one group and version.
func (h Handler) Resources(c echo.Context) error {
	group, version := c.Param("group"), c.Param("version")
	if version == "" {
		version = "v1"
	}
	gv := schema.GroupVersion{Group: group, Version: version}
	list := metav1.APIResourceList{TypeMeta: metav1.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"}, GroupVersion: gv.String(),
		APIResources: h.kinds(gv)}
	if len(list.APIResources) == 0 {
		if !slices.Contains(h.others(), gv) {
			return echo.ErrNotFound
		}
		var current bool
		list.APIResources, current = h.Others.Resources(c.Request().Context(), gv)
		switch {
		case list.APIResources == nil && !current:
			return apierrors.NewServiceUnavailable("service unavailable: who serves " + gv.String() + " does not say what is in it; see \"kubectl get apiservices\"")
		case list.APIResources == nil:
			list.APIResources = []metav1.APIResource{}
		}
	}
	return send(c, list)
}

// kinds returns the resources of the table in a group and version.
func (h Handler) kinds(gv schema.GroupVersion) (list []metav1.APIResource) {
	for _, k := range h.Kinds.Served() {
		if k.Group != gv.Group || k.Version != gv.Version {
			continue
		}
		list = append(list, metav1.APIResource{Name: k.Plural, SingularName: k.Singular,
			Namespaced: k.Namespaced, Kind: k.Kind, Verbs: k.Operations(), ShortNames: k.ShortNames, Categories: k.Categories})
		for _, sub := range subresources(k) {
			list = append(list, metav1.APIResource{Name: k.Plural + "/" + sub.Name,
				Namespaced: k.Namespaced, Kind: k.Body(&sub).Kind, Group: sub.Group, Version: sub.Version, Verbs: sub.Verbs})
		}
	}
	return list
}

// subresources returns the subresources of a kind in the order of their names.
func subresources(k *api.Kind) []api.Subresource {
	return slices.SortedFunc(slices.Values(k.Subresources), func(a, b api.Subresource) int { return strings.Compare(a.Name, b.Name) })
}

func wantsAggregated(c echo.Context) bool {
	m, err := encoding.Negotiate(c.Request().Header.Get("Accept"))
	return err == nil && m.As == encoding.GroupDiscoveryList
}

// send answers in JSON. If the client accepts no format that the API serves, it is refused (406).
func send(c echo.Context, v any) error {
	if _, err := encoding.Negotiate(c.Request().Header.Get("Accept")); err != nil {
		return err
	}
	return encoding.SendJSON(c, v)
}

// aggregate sends all of discovery in one answer.
func (h Handler) aggregate(c echo.Context, want func(group string) bool) error {
	list := apidiscoveryv2.APIGroupDiscoveryList{TypeMeta: metav1.TypeMeta{Kind: "APIGroupDiscoveryList", APIVersion: "apidiscovery.k8s.io/v2"},
		Items: []apidiscoveryv2.APIGroupDiscovery{}}
	groups, versions := h.groupVersions()
	for _, g := range groups {
		if !want(g) {
			continue
		}
		item := apidiscoveryv2.APIGroupDiscovery{ObjectMeta: metav1.ObjectMeta{Name: g}}
		for _, v := range versions[g] {
			item.Versions = append(item.Versions, h.discoverVersion(c.Request().Context(), schema.GroupVersion{Group: g, Version: v}))
		}
		list.Items = append(list.Items, item)
	}
	b, err := json.Marshal(list)
	if err != nil {
		return err
	}
	return c.Blob(http.StatusOK, "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList", append(b, '\n'))
}
