package apiserver

import (
	"net/http"

	"github.com/labstack/echo/v4"

	"minik8s/internal/api"
	"minik8s/internal/registry"
)

// route is what serves a method at a path of the API: verb is what the user must be allowed, long says that
// the answer lasts as long as the client likes.
type route struct {
	verb  string
	serve func(*Server, *request) error
	long  bool
}

// The routes of every kind, by method.
var (
	collectionRoutes = map[string]route{
		http.MethodGet:    {verb: "list", serve: (*Server).list},
		http.MethodPost:   {verb: "create", serve: (*Server).create},
		http.MethodDelete: {verb: "deletecollection", serve: (*Server).deleteCollection},
	}
	objectRoutes = map[string]route{
		http.MethodGet:    {verb: "get", serve: (*Server).get},
		http.MethodPut:    {verb: "update", serve: (*Server).update},
		http.MethodPatch:  {verb: "patch", serve: (*Server).patch},
		http.MethodDelete: {verb: "delete", serve: (*Server).delete},
	}
	questionRoutes = map[string]route{http.MethodPost: {verb: "create", serve: (*Server).answerQuestion}}
	watchRoute     = route{verb: "watch", serve: (*Server).watch, long: true}
)

// subroutes are the routes of what lies below an object, by its name. Which kinds have it, the table of
// kinds says.
var subroutes = map[string]map[string]route{
	"status": {
		http.MethodGet:   {verb: "get", serve: (*Server).get},
		http.MethodPut:   {verb: "update", serve: (*Server).update},
		http.MethodPatch: {verb: "patch", serve: (*Server).patch},
	},
	api.EphemeralContainersSubresource: {
		http.MethodGet:   {verb: "get", serve: (*Server).get},
		http.MethodPut:   {verb: "update", serve: (*Server).update},
		http.MethodPatch: {verb: "patch", serve: (*Server).patch},
	},
	"finalize": {http.MethodPut: {verb: "update", serve: (*Server).update}},
	api.ScaleSubresource: {
		http.MethodGet:   {verb: "get", serve: (*Server).getScale},
		http.MethodPut:   {verb: "update", serve: (*Server).putScale},
		http.MethodPatch: {verb: "patch", serve: (*Server).patchScale},
	},
	"binding":     {http.MethodPost: {verb: "create", serve: (*Server).bind}},
	"eviction":    {http.MethodPost: {verb: "create", serve: (*Server).evict}},
	"token":       {http.MethodPost: {verb: "create", serve: (*Server).token}},
	"log":         {http.MethodGet: {verb: "get", serve: (*Server).logs, long: true}},
	"exec":        connecting((*Server).exec),
	"attach":      connecting((*Server).attach),
	"portforward": connecting((*Server).portForward),
	"proxy":       proxying((*Server).proxy),
}

// route finds what serves a request.
func (r *request) route() (route, error) {
	method := r.Request().Method
	routes := objectRoutes
	switch {
	case r.kind.Asked:
		if routes = questionRoutes; r.name != "" {
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

// object is the one handler of every kind: it asks who may before anything is read, body included.
func (s *Server) object(c echo.Context) error {
	r, err := s.parse(c)
	if err != nil {
		return err
	}
	to, err := r.route()
	if err != nil {
		return err
	}
	name := r.name
	if to.verb == "list" || to.verb == "watch" || to.verb == "deletecollection" {
		if r.list, err = r.listOptions(); err != nil {
			return err
		}
		name = "" // of a watch of one object, which its field selector names
	}
	r.ask = &registry.Request{User: userOf(c), Verb: to.verb,
		Kind: r.kind, View: r.view, Sub: r.sub, Namespace: r.namespace, Name: name, Fields: r.list.Fields}
	ctx := c.Request().Context()
	if err := s.reg.Authorize(ctx, r.ask); err != nil {
		return err
	}
	leave, err := s.flow.enter(ctx, r.ask.User, s.weight(r, to), to.long)
	if err != nil {
		return err
	}
	defer leave()
	return to.serve(s, r)
}

// byPath serves what is no object, to those who may use the path.
func (s *Server) byPath(serve echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		path := c.Request().URL.Path
		if !isOpen(path) {
			q := &registry.Request{User: userOf(c), Verb: "get", Path: path}
			if err := s.reg.Authorize(c.Request().Context(), q); err != nil {
				return err
			}
		}
		return serve(c)
	}
}
