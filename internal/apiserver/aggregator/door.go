package aggregator

import (
	"slices"
	"strings"

	"github.com/labstack/echo/v4"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"minik8s/internal/aggregation"
	"minik8s/internal/api"
	"minik8s/internal/apiserver/authentication"
	"minik8s/internal/apiserver/flowcontrol"
	"minik8s/internal/apiserver/proxy"
	"minik8s/internal/apiserver/requestinfo"
	"minik8s/internal/registry"
)

// Door serves what lies below a group and version that is not stored, and leaves all else to stored.
func (a *Aggregator) Door(stored echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		gv := schema.GroupVersion{Group: c.Param("group"), Version: c.Param("version")}
		if to := a.service(gv); to != nil {
			return a.forward(c, to)
		}
		if g := a.local[gv]; g != nil {
			return a.answer(c, g)
		}
		return stored(c)
	}
}

// asked is a request that was read and not yet judged.
type asked struct {
	requestinfo.Info
	verb   string
	fields fields.Selector
}

// read reads a request. The errors are NotFound, and MethodNotAllowed for a method without a verb.
func read(c echo.Context) (asked, error) {
	info, err := requestinfo.Parse(c)
	if err != nil {
		return asked{}, err
	}
	if info.Resource == "" {
		return asked{}, echo.ErrNotFound
	}
	query := c.QueryParams()
	watch := query.Get("watch")
	q := asked{Info: info, verb: info.Verb(c.Request().Method, watch == "true" || watch == "1")}
	if q.verb == "" {
		return q, echo.ErrMethodNotAllowed
	}
	if q.verb == "list" || q.verb == "watch" || q.verb == "deletecollection" {
		q.fields, _ = fields.ParseSelector(query.Get("fieldSelector")) //nolint:errcheck // who serves the request says so
	}
	return q, nil
}

// enter lets a request in whose user may do this, as soon as there is room for it. The errors are 403 and 429.
func (a *Aggregator) enter(c echo.Context, kind *api.Kind, q asked, long bool) (leave func(), err error) {
	user, ctx := authentication.User(c), c.Request().Context()
	if err := a.cfg.Registry.Authorize(ctx, &registry.Request{User: user, Verb: q.verb, Kind: kind, Sub: q.Subresource,
		Namespace: q.Namespace, Name: q.Name, Fields: q.fields}); err != nil {
		return nil, err
	}
	return a.cfg.Limiter.Enter(ctx, user, flowcontrol.BodyUnits(max(c.Request().ContentLength, 0)), long)
}

// answer has a group that is answered in process serve a request.
func (a *Aggregator) answer(c echo.Context, g *aggregation.Group) error {
	q, err := read(c)
	if err != nil {
		return err
	}
	kind, err := kindOf(g, q)
	if err != nil {
		return err
	}
	long := q.verb == "watch"
	leave, err := a.enter(c, kind, q, long)
	if err != nil {
		return err
	}
	defer leave()
	r := &aggregation.Request{Request: c.Request(), Verb: q.verb, Resource: q.Resource, Subresource: q.Subresource,
		Namespace: q.Namespace, Name: q.Name, Query: c.QueryParams(), Encode: encoder(c)}
	if long {
		return g.Serve(proxy.InPieces(c.Response(), a.cfg.WriteTimeout), r)
	}
	return g.Serve(c.Response(), r)
}

// kindOf is what a request to a group is about, for authorisation. The errors are NotFound, and MethodNotAllowed for a
// verb that the resource does not have.
func kindOf(g *aggregation.Group, q asked) (*api.Kind, error) {
	if strings.Trim(q.Rest, "/") != "" {
		return nil, echo.ErrNotFound
	}
	kind := &api.Kind{Group: g.Group, Version: g.Version, Kind: q.Resource, Plural: q.Resource, Namespaced: q.Namespace != ""}
	name := q.Resource
	if q.Subresource != "" {
		name += "/" + q.Subresource
	}
	list := g.Resources()
	i := slices.IndexFunc(list, func(r metav1.APIResource) bool { return r.Name == name })
	switch {
	case i < 0 && g.Open:
		return kind, nil
	case i < 0, q.Namespace != "" && !list[i].Namespaced, q.Namespace == "" && q.Name != "" && list[i].Namespaced:
		return nil, echo.ErrNotFound
	case !slices.Contains(list[i].Verbs, q.verb):
		return nil, echo.ErrMethodNotAllowed
	}
	kind.Kind, kind.Namespaced = list[i].Kind, list[i].Namespaced
	return kind, nil
}
