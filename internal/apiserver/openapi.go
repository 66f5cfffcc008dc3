package apiserver

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"reflect"
	"strings"
	"sync"

	"github.com/labstack/echo/v4"

	"minik8s/internal/api"
)

// openapi is the description of the kinds that kubectl reads for explain, for apply's merge keys and
// to learn that the server checks fields itself. It is made from the Go types when first asked for.
type openapi struct {
	mu   sync.Mutex
	docs map[string]openapiDoc // by path: "api/v1"
	// until is closed when the documents do not hold any more, because another kind is served.
	until <-chan struct{}
}

type openapiDoc struct {
	body []byte
	hash string
}

func gvPath(group, version string) string {
	if group == "" {
		return "api/" + version
	}
	return "apis/" + group + "/" + version
}

// openapiDocOf is the document at a path; false if no group and version has it.
func (s *Server) openapiDocOf(path string) (openapiDoc, bool) {
	o := &s.openapi
	o.mu.Lock()
	defer o.mu.Unlock()
	select {
	case <-o.until:
		o.docs = nil
	default:
	}
	if d, ok := o.docs[path]; ok {
		return d, true
	}
	if o.docs == nil {
		o.docs, o.until = map[string]openapiDoc{}, s.reg.Kinds().Changed()
	}
	groups, versions := s.groupVersions()
	for _, g := range groups {
		for _, v := range versions[g] {
			if gvPath(g, v) != path {
				continue
			}
			body, err := json.Marshal(describeGroup(s.reg.Kinds().Served(), g, v))
			if err != nil {
				return openapiDoc{}, false
			}
			sum := sha256.Sum256(body)
			o.docs[path] = openapiDoc{body: body, hash: strings.ToUpper(hex.EncodeToString(sum[:]))}
			return o.docs[path], true
		}
	}
	return openapiDoc{}, false
}

func (s *Server) openapiIndex(c echo.Context) error {
	paths := map[string]any{}
	groups, versions := s.groupVersions()
	for _, g := range groups {
		for _, v := range versions[g] {
			p := gvPath(g, v)
			if d, ok := s.openapiDocOf(p); ok {
				paths[p] = map[string]string{"serverRelativeURL": "/openapi/v3/" + p + "?hash=" + d.hash}
			}
		}
	}
	return sendJSON(c, map[string]any{"paths": paths})
}

func (s *Server) openapiDoc(c echo.Context) error {
	d, ok := s.openapiDocOf(strings.Trim(c.Param("*"), "/"))
	if !ok {
		return echo.ErrNotFound
	}
	c.Response().Header().Set("ETag", `"`+d.hash+`"`)
	return c.Blob(http.StatusOK, jsonType, d.body)
}

type object = map[string]any

// describeGroup is the OpenAPI v3 document of one group and version.
func describeGroup(kinds []*api.Kind, group, version string) object {
	paths, schemas := object{}, newSchemas("#/components/schemas/")
	for _, k := range kinds {
		if k.Group != group || k.Version != version {
			continue
		}
		schemas.add(reflect.TypeOf(k.New()).Elem(), k)
		base := "/" + gvPath(group, version)
		if k.Namespaced {
			base += "/namespaces/{namespace}"
		}
		base += "/" + k.Plural
		if k.Asked {
			paths[base] = object{"post": operation(k, "post")}
			continue
		}
		paths[base] = object{"get": operation(k, "list"), "post": operation(k, "post")}
		paths[base+"/{name}"] = object{"get": operation(k, "get"), "put": operation(k, "put"),
			"patch": operation(k, "patch"), "delete": operation(k, "delete")}
	}
	return object{"openapi": "3.0.0", "info": object{"title": "minik8s", "version": version},
		"paths": paths, "components": object{"schemas": schemas.byName}}
}

func operation(k *api.Kind, action string) object {
	op := object{"x-kubernetes-action": action,
		"x-kubernetes-group-version-kind": gvkOf(k),
		"responses":                       object{"200": object{"description": "OK"}}}
	if action == "post" || action == "put" || action == "patch" {
		var params []object
		for _, name := range []string{"dryRun", "fieldManager", "fieldValidation"} {
			params = append(params, object{"name": name, "in": "query", "schema": object{"type": "string", "uniqueItems": true}})
		}
		op["parameters"] = params
	}
	return op
}

func gvkOf(k *api.Kind) object {
	return object{"group": k.Group, "version": k.Version, "kind": k.Kind}
}

// schemaSet is the schemas by name, each Go type once.
type schemaSet struct {
	byName object
	at     string // where in the document they are
	// lone: a reference may have no neighbours, as in OpenAPI v3.
	lone bool
}

func newSchemas(at string) schemaSet {
	return schemaSet{byName: object{}, at: at, lone: strings.HasPrefix(at, "#/components/")}
}

// schemaName is how Kubernetes names a type: io.k8s.api.core.v1.Pod.
func schemaName(t reflect.Type) string {
	parts := strings.Split(t.PkgPath(), "/")
	if len(parts) < 3 || !strings.HasPrefix(t.PkgPath(), "k8s.io/") {
		return strings.ReplaceAll(t.PkgPath(), "/", ".") + "." + t.Name()
	}
	return "io.k8s." + strings.Join(parts[1:], ".") + "." + t.Name()
}

func (s schemaSet) add(t reflect.Type, k *api.Kind) {
	name := schemaName(t)
	if _, ok := s.byName[name]; ok {
		return
	}
	schema := object{"type": "object"}
	s.byName[name] = schema // before the fields: types refer to themselves
	if k != nil {
		schema["x-kubernetes-group-version-kind"] = []object{gvkOf(k)}
	}
	docs := map[string]string{}
	if d, ok := reflect.New(t).Interface().(interface{ SwaggerDoc() map[string]string }); ok {
		docs = d.SwaggerDoc()
	}
	if d := docs[""]; d != "" {
		schema["description"] = d
	}
	props := object{}
	s.fields(t, docs, props)
	if len(props) > 0 {
		schema["properties"] = props
	}
}

// fields adds a property per JSON field, embedded structs flattened.
func (s schemaSet) fields(t reflect.Type, docs map[string]string, props object) {
	for f := range t.Fields() {
		tag, opts, _ := strings.Cut(f.Tag.Get("json"), ",")
		if f.Anonymous && (tag == "" || strings.Contains(opts, "inline")) {
			inner := map[string]string{}
			if d, ok := reflect.New(f.Type).Interface().(interface{ SwaggerDoc() map[string]string }); ok {
				inner = d.SwaggerDoc()
			}
			s.fields(f.Type, inner, props)
			continue
		}
		if tag == "" || tag == "-" || !f.IsExported() {
			continue
		}
		p := s.property(f.Type)
		if d := docs[tag]; d != "" {
			p["description"] = d
		}
		if ref, ok := p["$ref"]; ok && len(p) > 1 && s.lone {
			delete(p, "$ref")
			p["allOf"] = []object{{"$ref": ref}}
		}
		if v := f.Tag.Get("patchStrategy"); v != "" {
			p["x-kubernetes-patch-strategy"] = v
		}
		if v := f.Tag.Get("patchMergeKey"); v != "" {
			p["x-kubernetes-patch-merge-key"] = v
		}
		props[tag] = p
	}
}

// scalars are the types that are written as something else than their Go struct.
var scalars = map[string]object{
	"k8s.io/apimachinery/pkg/api/resource.Quantity":        {"type": "string", "x-kubernetes-quantity": true},
	"k8s.io/apimachinery/pkg/apis/meta/v1.Time":            {"type": "string", "format": "date-time"},
	"k8s.io/apimachinery/pkg/apis/meta/v1.MicroTime":       {"type": "string", "format": "date-time"},
	"k8s.io/apimachinery/pkg/apis/meta/v1.Duration":        {"type": "string"},
	"k8s.io/apimachinery/pkg/apis/meta/v1.FieldsV1":        {"type": "object"},
	"k8s.io/apimachinery/pkg/util/intstr.IntOrString":      {"x-kubernetes-int-or-string": true, "type": "string", "format": "int-or-string"},
	"k8s.io/apimachinery/pkg/runtime.RawExtension":         {"type": "object"},
	"k8s.io/apimachinery/pkg/apis/meta/v1.ConditionStatus": {"type": "string"},
}

func (s schemaSet) property(t reflect.Type) object {
	if sc, ok := scalars[t.PkgPath()+"."+t.Name()]; ok {
		out := object{}
		for k, v := range sc {
			out[k] = v
		}
		return out
	}
	switch t.Kind() {
	case reflect.Pointer:
		return s.property(t.Elem())
	case reflect.Slice, reflect.Array:
		if t.Elem().Kind() == reflect.Uint8 {
			return object{"type": "string", "format": "byte"}
		}
		return object{"type": "array", "items": s.property(t.Elem())}
	case reflect.Map:
		return object{"type": "object", "additionalProperties": s.property(t.Elem())}
	case reflect.Struct:
		s.add(t, nil)
		return object{"$ref": s.at + schemaName(t)}
	case reflect.Bool:
		return object{"type": "boolean"}
	case reflect.Int32, reflect.Int64, reflect.Int, reflect.Uint32, reflect.Uint64:
		return object{"type": "integer", "format": strings.TrimPrefix(t.Kind().String(), "u")}
	case reflect.Float32, reflect.Float64:
		return object{"type": "number", "format": "double"}
	case reflect.String:
		return object{"type": "string"}
	}
	return object{}
}
