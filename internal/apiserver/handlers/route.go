package handlers

import (
	"net/http"

	"github.com/labstack/echo/v4"

	"minik8s/internal/api"
	"minik8s/internal/apiserver/nodes"
)

// route is what serves a method at a path of the API: verb is what the user must be allowed, long says that
// the answer lasts as long as the client likes, foreign that it is a container's: which media types the client accepts is
// then between these two.
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
	watchRoute   = route{verb: "watch", serve: (*Handler).watch, long: true}
)

// subroutes are the routes of what lies below an object, by its name. Which kinds have it, the table of
// kinds says.
var subroutes = map[string]map[string]route{
	"status": {
		http.MethodGet:   {verb: "get", serve: (*Handler).get},
		http.MethodPut:   {verb: "update", serve: (*Handler).update},
		http.MethodPatch: {verb: "patch", serve: (*Handler).patch},
	},
	api.EphemeralContainersSubresource: {
		http.MethodGet:   {verb: "get", serve: (*Handler).get},
		http.MethodPut:   {verb: "update", serve: (*Handler).update},
		http.MethodPatch: {verb: "patch", serve: (*Handler).patch},
	},
	"finalize": {http.MethodPut: {verb: "update", serve: (*Handler).update}},
	api.ScaleSubresource: {
		http.MethodGet:   {verb: "get", serve: (*Handler).getScale},
		http.MethodPut:   {verb: "update", serve: (*Handler).putScale},
		http.MethodPatch: {verb: "patch", serve: (*Handler).patchScale},
	},
	"binding":     {http.MethodPost: {verb: "create", serve: (*Handler).bind}},
	"eviction":    {http.MethodPost: {verb: "create", serve: (*Handler).evict}},
	"token":       {http.MethodPost: {verb: "create", serve: (*Handler).token}},
	"log":         {http.MethodGet: {verb: "get", serve: (*Handler).logs, long: true, foreign: true}},
	"exec":        connecting((*nodes.Handler).Exec),
	"attach":      connecting((*nodes.Handler).Attach),
	"portforward": connecting((*nodes.Handler).PortForward),
	"proxy":       proxying((*Handler).proxy),
}

// route finds what serves a request.
func (r *request) route() (route, error) {
	method := r.Request().Method
	routes := objectRoutes
	switch {
	case r.kind.Asked:
		if routes = reviewRoutes; r.name != "" {
			return route{}, echo.ErrNotFound
		}
	case r.sub != "":
		if r.sub != "status" || !r.kind.Status {
			if r.kind.Subresource(r.sub) == nil {
				return route{}, echo.ErrNotFound
			}
		}
		routes = subroutes[r.sub]
	case method == http.MethodGet && isTrue(r.query.Get("watch")):
		return watchRoute, nil
	case r.name == "":
		routes = collectionRoutes
	}
	found, ok := routes[method]
	if !ok {
		return route{}, echo.ErrMethodNotAllowed
	}
	return found, nil
}
