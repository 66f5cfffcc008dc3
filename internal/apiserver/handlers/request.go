package handlers

import (
	"net/url"
	"strings"

	"github.com/labstack/echo/v4"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"minik8s/internal/api"
	"minik8s/internal/api/table"
	"minik8s/internal/apiserver/encoding"
	"minik8s/internal/apiserver/requestinfo"
	"minik8s/internal/registry"
)

// request is a request for something of a kind: see requestinfo.Info for the form of its path.
type request struct {
	echo.Context
	kind            *api.Kind
	view            *api.Kind // the kind that the client sees; nil: as it is stored
	namespace, name string
	sub             string
	form            *registry.Form // in which the subresource is read and written; nil: the object's own
	path            string         // what follows the subresource, with its first slash, escaped as the client sent it
	query           url.Values
	out             encoding.Encoder
	list            registry.ListOptions // of a collection, and of a watch
	ask             *registry.Request    // what has been authorised
}

// parse reads the path. The error is NotFound if the API has no such path.
func (h *Handler) parse(c echo.Context) (*request, error) {
	info, err := requestinfo.Parse(c)
	if err != nil {
		return nil, err
	}
	r := &request{Context: c, namespace: info.Namespace, name: info.Name, sub: info.Subresource, path: info.Rest, query: c.QueryParams()}
	if info.Watch {
		r.query.Set("watch", "true")
	}
	if err := h.findKind(r, info.Resource); err != nil {
		return nil, err
	}
	r.out = encoding.Encoder{Kind: r.kind, View: r.view,
		IncludeObject: r.query.Get("includeObject"), Layout: table.Layout(r.query.Get("layout"))}
	return r, nil
}

// findKind finds the kind, and refuses a path that its kind does not have.
func (h *Handler) findKind(r *request, resource string) error {
	version := r.Param("version")
	if version == "" {
		version = "v1"
	}
	r.kind = h.reg.Kinds().ByResource(schema.GroupVersionResource{Group: r.Param("group"), Version: version, Resource: resource})
	if r.kind == nil || r.namespace != "" && !r.kind.Namespaced {
		return echo.ErrNotFound
	}
	if r.kind.View != nil {
		r.kind, r.view = r.kind.View.Of, r.kind
		if r.sub != "" && r.view.Subresource(r.sub) == nil {
			return echo.ErrNotFound
		}
	}
	if sub := r.kind.Subresource(r.sub); (sub == nil || !sub.Path) && strings.Trim(r.path, "/") != "" {
		return echo.ErrNotFound
	}
	if r.kind.Namespaced && r.namespace == "" && r.name != "" {
		return echo.ErrNotFound
	}
	r.form = h.reg.Strategy(r.kind).FormOf(r.sub)
	return nil
}

// served returns the kind as the client sees it.
func (r *request) served() *api.Kind {
	if r.form != nil {
		return r.form.Kind
	}
	return r.out.Served()
}

func (r *request) accept() string { return r.Request().Header.Get("Accept") }

func isTrue(s string) bool { return s == "true" || s == "1" }
