package handlers

import (
	"net/url"
	"strings"

	"github.com/labstack/echo/v4"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"minik8s/internal/api"
	"minik8s/internal/api/table"
	"minik8s/internal/apiserver/encoding"
	"minik8s/internal/registry"
)

// request is a parsed path below a group and version:
//
//	RESOURCE [/NAME [/SUB]], or namespaces/NS/RESOURCE [/NAME [/SUB]]
//
// If the subresource takes a path, that follows.
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
	r := &request{Context: c, query: c.QueryParams()}
	resource, err := r.parsePath(belowVersion(c))
	if err != nil {
		return nil, err
	}
	if err := h.findKind(r, resource); err != nil {
		return nil, err
	}
	r.out = encoding.Encoder{Kind: r.kind, View: r.view,
		IncludeObject: r.query.Get("includeObject"), Layout: table.Layout(r.query.Get("layout"))}
	return r, nil
}

// parsePath splits the path. It does not look up the resource's kind.
func (r *request) parsePath(path escapedPath) (resource string, err error) {
	if resource, err = path.next(); err != nil {
		return "", err
	}
	if resource == "watch" { // the old form of ?watch=1
		r.query.Set("watch", "true")
		if resource, err = path.next(); err != nil {
			return "", err
		}
	}
	if resource == "namespaces" {
		below := path
		namespace, err := below.next()
		if err != nil {
			return "", err
		}
		inside, err := below.next()
		if err != nil {
			return "", err
		}
		if inside != "" && !isNamespaceSub(inside) {
			r.namespace, resource, path = namespace, inside, below
		}
	}
	if r.name, err = path.next(); err != nil {
		return "", err
	}
	if r.sub, err = path.next(); err != nil {
		return "", err
	}
	r.path = string(path)
	return resource, nil
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

// escapedPath is the rest of a path, as the client sent it; empty, or with a slash first.
type escapedPath string

// belowVersion returns the path below a group and version.
func belowVersion(c echo.Context) escapedPath {
	rest := c.Request().URL.EscapedPath()
	for range strings.Count(strings.TrimSuffix(c.Path(), "/*"), "/") {
		_, rest = cutSegment(rest)
	}
	for strings.HasPrefix(rest, "//") {
		rest = rest[1:]
	}
	return escapedPath(rest)
}

// cutSegment removes the first segment of a path that begins with a slash. The rest begins with one too, unless it is
// empty.
func cutSegment(path string) (segment, rest string) {
	if path == "" {
		return "", ""
	}
	path = path[1:]
	if i := strings.IndexByte(path, '/'); i >= 0 {
		return path[:i], path[i:]
	}
	return path, ""
}

// next removes and returns the next segment, unescaped; "" at the end. An empty segment is NotFound.
func (p *escapedPath) next() (string, error) {
	if strings.Trim(string(*p), "/") == "" {
		return "", nil
	}
	segment, rest := cutSegment(string(*p))
	*p = escapedPath(rest)
	plain, err := url.PathUnescape(segment)
	if err != nil || plain == "" {
		return "", echo.ErrNotFound
	}
	return plain, nil
}

// served returns the kind as the client sees it.
func (r *request) served() *api.Kind {
	if r.form != nil {
		return r.form.Kind
	}
	return r.out.Served()
}

func (r *request) accept() string { return r.Request().Header.Get("Accept") }

func isNamespaceSub(s string) bool { return api.Namespaces.Subresource(s) != nil }

func isTrue(s string) bool { return s == "true" || s == "1" }
