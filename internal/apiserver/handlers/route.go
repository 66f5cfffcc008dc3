package handlers

import (
	"net/http"

	"github.com/labstack/echo/v4"

	"minik8s/internal/api"
	"minik8s/internal/apiserver/nodes"
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
	watchRoute   = route{verb: "watch", serve: (*Handler).watch, long: true}
)

// subroutes are the routes of the subresources, by name. The table of kinds says which kinds have which.
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
		http.MethodGet:   {verb: "get", serve: (*Handler).get},
		http.MethodPut:   {verb: "update", serve: (*Handler).update},
		http.MethodPatch: {verb: "patch", serve: (*Handler).patch},
	},
	"binding":     {http.MethodPost: {verb: "create", serve: (*Handler).act}},
	"eviction":    {http.MethodPost: {verb: "create", serve: (*Handler).act}},
	"token":       {http.MethodPost: {verb: "create", serve: (*Handler).act}},
	"log":         {http.MethodGet: {verb: "get", serve: (*Handler).logs, long: true, foreign: true}},
	"exec":        connecting((*nodes.Handler).Exec),
	"attach":      connecting((*nodes.Handler).Attach),
	"portforward": connecting((*nodes.Handler).PortForward),
	"proxy":       proxying((*Handler).proxy),
}

// route finds the route of a request.
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
