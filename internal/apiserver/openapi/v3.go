package openapi

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
	"minik8s/internal/apiserver/encoding"
)

// Documents are the descriptions of the kinds, each made when it is first requested.
type Documents struct {
	kinds *api.Table

	mu   sync.Mutex
	docs map[string]document // by path: "api/v1"
	// until is closed when the documents become outdated because another kind is served.
	until <-chan struct{}
}

// New returns the documents of a table of kinds.
func New(kinds *api.Table) *Documents { return &Documents{kinds: kinds} }

type document struct {
	body []byte
	hash string
}

func gvPath(group, version string) string {
	if group == "" {
		return "api/" + version
	}
	return "apis/" + group + "/" + version
}

// document returns the document at a path; false if no group and version has that path.
func (o *Documents) document(path string) (document, bool) {
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
		o.docs, o.until = map[string]document{}, o.kinds.Changed()
	}
	groups, versions := o.kinds.GroupVersions()
	for _, g := range groups {
		for _, v := range versions[g] {
			if gvPath(g, v) != path {
				continue
			}
			body, err := json.Marshal(describeGroup(o.kinds.Served(), g, v))
			if err != nil {
				return document{}, false
			}
			sum := sha256.Sum256(body)
			o.docs[path] = document{body: body, hash: strings.ToUpper(hex.EncodeToString(sum[:]))}
			return o.docs[path], true
		}
	}
	return document{}, false
}

// Index serves /openapi/v3, the list of documents.
func (o *Documents) Index(c echo.Context) error {
	paths := map[string]any{}
	groups, versions := o.kinds.GroupVersions()
	for _, g := range groups {
		for _, v := range versions[g] {
			p := gvPath(g, v)
			if d, ok := o.document(p); ok {
				paths[p] = map[string]string{"serverRelativeURL": "/openapi/v3/" + p + "?hash=" + d.hash}
			}
		}
	}
	return encoding.SendJSON(c, map[string]any{"paths": paths})
}

// V3 serves the document of one group and version.
func (o *Documents) V3(c echo.Context) error {
	d, ok := o.document(strings.Trim(c.Param("*"), "/"))
	if !ok {
		return echo.ErrNotFound
	}
	c.Response().Header().Set("ETag", `"`+d.hash+`"`)
	return c.Blob(http.StatusOK, encoding.JSONType, d.body)
}

type object = map[string]any

// describeGroup returns the OpenAPI v3 document of one group and version.
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
