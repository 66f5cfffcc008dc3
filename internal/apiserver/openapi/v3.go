package openapi

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"net/http"
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
		describe(k, paths, schemas, operationV3, func([]string) any { return nil })
	}
	return object{"openapi": "3.0.0", "info": object{"title": "minik8s", "version": version},
		"paths": paths, "components": object{"schemas": schemas.byName}}
}

func operationV3(op operation) object {
	out := object{"x-kubernetes-action": op.action,
		"x-kubernetes-group-version-kind": gvkOf(op.of),
		"responses":                       object{"200": object{"description": "OK"}}}
	if op.writes() {
		var params []object
		for _, name := range writeOptions {
			params = append(params, object{"name": name, "in": "query", "schema": object{"type": "string", "uniqueItems": true}})
		}
		out["parameters"] = params
	}
	return out
}

// writeOptions are the query parameters of a write. kubectl looks for them before it uses them.
var writeOptions = []string{"dryRun", "fieldManager", "fieldValidation"}
