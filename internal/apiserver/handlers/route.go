package handlers

import (
	"net/http"
	"net/url"
	"slices"

	"github.com/labstack/echo/v4"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"minik8s/internal/aggregation"
	"minik8s/internal/api"
	"minik8s/internal/apiserver/nodes"
	"minik8s/internal/apiserver/proxy"
)

// route serves one method at a path of the API. verb is what the user must be allowed to do. long marks an answer
// that lasts as long as the client wants. foreign marks an answer that comes from a container: its media type is then
// up to the client and the container.
type route struct {
	verb          string
	serve         func(*Handler, *request) error
	long, foreign bool
}

// The routes of every kind, by method.
var (
	collectionRoutes = map[string]route{
		http.MethodGet:    {verb: "list", serve: (*Handler).list},
		http.MethodPost:   {verb: "create", serve: (*Handler).create},
		http.MethodDelete: {verb: "deletecollection", serve: (*Handler).deleteCollection},
	}
	objectRoutes = map[string]route{
		http.MethodGet:    {verb: "get", serve: (*Handler).get},
		http.MethodPut:    {verb: "update", serve: (*Handler).update},
		http.MethodPatch:  {verb: "patch", serve: (*Handler).patch},
		http.MethodDelete: {verb: "delete", serve: (*Handler).delete},
	}
	reviewRoutes = map[string]route{http.MethodPost: {verb: "create", serve: (*Handler).review}}
	watchRoutes  = map[string]route{http.MethodGet: {verb: "watch", serve: (*Handler).watch, long: true}}
)

// partRoutes are the routes of the subresources that are a part or another form of the object, or an action. The table
// of kinds says which of them each has.
var partRoutes = map[string]route{
	http.MethodGet:   {verb: "get", serve: (*Handler).get},
	http.MethodPut:   {verb: "update", serve: (*Handler).update},
	http.MethodPatch: {verb: "patch", serve: (*Handler).patch},
	http.MethodPost:  {verb: "create", serve: (*Handler).act},
}

// connections are the routes of the subresources that lead to a container or a node.
var connections = map[string]map[string]route{
	"pods/log":         {http.MethodGet: {verb: "get", serve: (*Handler).logs, long: true, foreign: true}},
	"pods/exec":        connecting((*nodes.Handler).Exec),
	"pods/attach":      connecting((*nodes.Handler).Attach),
	"pods/portforward": connecting((*nodes.Handler).PortForward),
	"pods/proxy":       proxying((*Handler).podProxy),
	"services/proxy":   proxying((*Handler).serviceProxy),
	"nodes/proxy":      proxying((*Handler).nodeProxy),
}

// connected are the routes of the subresources that parts of the daemon answer; the table of kinds says which verbs each has.
var connected = map[string]route{
	http.MethodGet:  {verb: "get", serve: (*Handler).connect, long: true, foreign: true},
	http.MethodPut:  {verb: "update", serve: (*Handler).connect, long: true, foreign: true},
	http.MethodPost: {verb: "create", serve: (*Handler).connect, long: true, foreign: true},
}

// connect has a part answer. A master that has no such part answers that it is not there (503).
func (h *Handler) connect(r *request) error {
	answer := h.connectors[r.kind.Plural+"/"+r.sub]
	if answer == nil {
		return apierrors.NewServiceUnavailable("this master does not serve " + r.kind.Plural + "/" + r.sub)
	}
	e, err := h.reg.Parent(r.Request().Context(), r.ask, r.name)
	var above api.Object
	switch {
	case err == nil:
		above = e.Object()
	case !apierrors.IsNotFound(err) || r.Request().Method != http.MethodGet || !r.kind.Subresource(r.sub).Absent:
		return err
	}
	path, err := url.PathUnescape(r.path)
	if err != nil {
		return apierrors.NewBadRequest("the path: " + err.Error())
	}
	// The server gives every answer a deadline from the start. InPieces removes it, since a part may take long before its first byte, and
	// limits each piece instead.
	return answer(proxy.InPieces(r.Response(), h.writeTimeout), &aggregation.Connected{Request: r.Request(), Object: above, Namespace: r.ask.Namespace, Name: r.name, User: r.ask.User.Name, Path: path, Query: r.query})
}

// route finds the route of a request. The error is NotFound for a path that the kind does not have, and
// MethodNotAllowed for a verb that the table of kinds does not give it.
func (h *Handler) route(r *request) (route, error) {
	method := r.Request().Method
	routes, verbs := objectRoutes, r.out.Served().Operations()
	switch {
	case r.kind.Asked:
		if routes = reviewRoutes; r.name != "" {
			return route{}, echo.ErrNotFound
		}
	case r.sub != "":
		sub := r.kind.Subresource(r.sub)
		if sub == nil {
			return route{}, echo.ErrNotFound
		}
		if routes, verbs = partRoutes, sub.Verbs; sub.Connects {
			routes, verbs = connections[r.kind.Plural+"/"+r.sub], nil
			if routes == nil {
				routes, verbs = connected, sub.Verbs
			}
		}
	case method == http.MethodGet && isTrue(r.query.Get("watch")):
		routes = watchRoutes
	case r.name == "":
		routes = collectionRoutes
	}
	found, ok := routes[method]
	if !ok || verbs != nil && !slices.Contains(verbs, found.verb) {
		return route{}, echo.ErrMethodNotAllowed
	}
	return found, nil
}
