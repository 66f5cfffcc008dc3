package requestinfo

import (
	"net/http"

	"github.com/labstack/echo/v4"

	"minik8s/internal/api"
)

// Info is what a path below a group and version is about:
//
//	RESOURCE [/NAME [/SUB]], or namespaces/NS/RESOURCE [/NAME [/SUB]]
//
// and whatever follows.
type Info struct {
	Resource, Namespace, Name, Subresource string
	// Rest follows the subresource, with its first slash, escaped as the client sent it.
	Rest string
	// Watch: it has the old form of ?watch=1, watch/RESOURCE.
	Watch bool
}

// Parse reads the path of a request whose route ends with the version and "/*". It does not know which resources there
// are. The error is NotFound.
func Parse(c echo.Context) (Info, error) { return parse(belowVersion(c)) }

func parse(path escaped) (i Info, err error) {
	if i.Resource, err = path.next(); err != nil {
		return i, err
	}
	if i.Resource == "watch" {
		i.Watch = true
		if i.Resource, err = path.next(); err != nil {
			return i, err
		}
	}
	if i.Resource == "namespaces" {
		below := path
		namespace, err := below.next()
		if err != nil {
			return i, err
		}
		inside, err := below.next()
		if err != nil {
			return i, err
		}
		if inside != "" && api.Namespaces.Subresource(inside) == nil {
			i.Namespace, i.Resource, path = namespace, inside, below
		}
	}
	if i.Name, err = path.next(); err != nil {
		return i, err
	}
	if i.Subresource, err = path.next(); err != nil {
		return i, err
	}
	i.Rest = string(path)
	return i, nil
}

// Verb is what a user must be allowed to do, as Kubernetes derives it from the method; empty for a method that has no
// verb. watch says that the query asks for a watch.
func (i Info) Verb(method string, watch bool) string {
	switch method {
	case http.MethodGet, http.MethodHead:
		switch {
		case i.Watch || watch:
			return "watch"
		case i.Name == "":
			return "list"
		}
		return "get"
	case http.MethodPost:
		return "create"
	case http.MethodPut:
		return "update"
	case http.MethodPatch:
		return "patch"
	case http.MethodDelete:
		if i.Name == "" {
			return "deletecollection"
		}
		return "delete"
	}
	return ""
}
