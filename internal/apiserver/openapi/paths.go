package openapi

import (
	"net/http"
	"reflect"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"minik8s/internal/api"
)

// path is one path of a kind, and what the table of kinds says can be done there.
type path struct {
	path   string
	params []string // what stands in braces in it
	ops    []operation
}

// operation is a method at a path.
type operation struct {
	method string // in lower case, as OpenAPI has it
	// action is Kubernetes' word for it (x-kubernetes-action).
	action string
	// of is the kind of the body; typ is its Go type, nil if the body is not an object of the API.
	of  schema.GroupVersionKind
	typ reflect.Type
}

// writes reports whether the operation takes the options of a write.
func (o operation) writes() bool {
	return o.action == "post" || o.action == "put" || o.action == "patch"
}

// methods are the methods of the verbs for one object, or for a subresource.
var methods = map[string]string{"get": http.MethodGet, "create": http.MethodPost, "update": http.MethodPut,
	"patch": http.MethodPatch, "delete": http.MethodDelete}

// actions are Kubernetes' words for the methods at one object.
var actions = map[string]string{http.MethodGet: "get", http.MethodPost: "post", http.MethodPut: "put",
	http.MethodPatch: "patch", http.MethodDelete: "delete"}

// pathsOf returns the paths of a kind. A watch has none of its own: it is a query of the list.
func pathsOf(k *api.Kind) []path {
	all := path{path: "/" + gvPath(k.Group, k.Version)}
	if k.Namespaced {
		all.path += "/namespaces/{namespace}"
		all.params = []string{"namespace"}
	}
	all.path += "/" + k.Plural
	one := path{path: all.path + "/{name}", params: append([]string{"name"}, all.params...)}
	typ := reflect.TypeOf(k.New()).Elem()
	for _, verb := range k.Operations() {
		op := operation{of: k.GVK(), typ: typ}
		switch verb {
		case "list":
			op.method, op.action = http.MethodGet, "list"
		case "create":
			op.method, op.action = http.MethodPost, "post"
		case "deletecollection":
			op.method, op.action = http.MethodDelete, "deletecollection"
		case "watch":
			continue
		default:
			op.method = methods[verb]
			op.action = actions[op.method]
			one.ops = append(one.ops, op)
			continue
		}
		all.ops = append(all.ops, op)
	}
	paths := []path{all, one}
	for i := range k.Subresources {
		paths = append(paths, below(k, &k.Subresources[i], one)...)
	}
	return paths
}

// below returns the paths of a subresource, whose object is at the path one.
func below(k *api.Kind, sub *api.Subresource, one path) []path {
	p := path{path: one.path + "/" + sub.Name, params: one.params}
	of := k.Body(sub)
	for _, verb := range sub.Verbs {
		op := operation{method: methods[verb], of: of, typ: bodyOf(k, of)}
		op.action = actions[op.method]
		if sub.Connects {
			op.action, op.typ = "connect", nil
		}
		p.ops = append(p.ops, op)
	}
	if !sub.Path {
		return []path{p}
	}
	deep := path{path: p.path + "/{path}", params: append([]string{"path"}, p.params...), ops: p.ops}
	return []path{p, deep}
}

// bodyOf returns the Go type of the body of a subresource.
func bodyOf(k *api.Kind, of schema.GroupVersionKind) reflect.Type {
	if of == k.GVK() {
		return reflect.TypeOf(k.New()).Elem()
	}
	if obj, err := api.Scheme.New(of); err == nil {
		return reflect.TypeOf(obj).Elem()
	}
	return nil
}

// describe adds the paths of a kind to paths, and the types of their bodies to schemas; a version of OpenAPI says how
// an operation is written, and what is said of a path beside its operations.
func describe(k *api.Kind, paths object, schemas schemaSet, write func(op operation) object, params func(names []string) any) {
	for _, p := range pathsOf(k) {
		item := object{}
		for _, op := range p.ops {
			if op.typ != nil {
				schemas.add(op.typ, &op.of)
			}
			item[strings.ToLower(op.method)] = write(op)
		}
		if len(item) == 0 {
			continue
		}
		if said := params(p.params); said != nil {
			item["parameters"] = said
		}
		paths[p.path] = item
	}
}

func gvkOf(gvk schema.GroupVersionKind) object {
	return object{"group": gvk.Group, "version": gvk.Version, "kind": gvk.Kind}
}
