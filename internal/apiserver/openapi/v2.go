package openapi

import (
	"encoding/json"
	"net/http"
	"strings"

	openapi_v2 "github.com/google/gnostic-models/openapiv2"
	"github.com/labstack/echo/v4"
	"google.golang.org/protobuf/proto"

	"minik8s/internal/api"
	"minik8s/internal/apiserver/encoding"
)

// protobufV2 is the media type of the old document for client-go and Helm. They request it with an @, which is not
// valid in the media type of an answer.
const protobufV2 = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"

// V2 serves everything in one OpenAPI v2 document, for clients that do not know v3. It is rarely requested, so it is
// made each time and not kept.
func (o *Documents) V2(c echo.Context) error {
	body, err := json.Marshal(describeAll(o.kinds.Served()))
	if err != nil {
		return err
	}
	if !strings.Contains(c.Request().Header.Get("Accept"), "protobuf") {
		return c.Blob(http.StatusOK, encoding.JSONType, body)
	}
	doc, err := openapi_v2.ParseDocument(body)
	if err != nil {
		return err
	}
	if body, err = proto.Marshal(doc); err != nil {
		return err
	}
	return c.Blob(http.StatusOK, protobufV2, body)
}

// describeAll returns the OpenAPI v2 document.
func describeAll(kinds []*api.Kind) object {
	paths, schemas := object{}, newSchemas("#/definitions/")
	for _, k := range kinds {
		describe(k, paths, schemas, func(op operation) object { return operationV2(op, schemas.at) }, pathParameters)
	}
	return object{"swagger": "2.0", "info": object{"title": "minik8s", "version": "v1"}, "paths": paths, "definitions": schemas.byName}
}

func pathParameters(names []string) any {
	if len(names) == 0 {
		return nil
	}
	var params []object
	for _, name := range names {
		params = append(params, object{"name": name, "in": "path", "required": true, "type": "string"})
	}
	return params
}

// operationV2 describes an operation; at is the place of the schemas in the document.
func operationV2(op operation, at string) object {
	types := []string{encoding.JSONType, encoding.YAMLType, encoding.ProtobufType}
	ok := object{"description": "OK"}
	out := object{"x-kubernetes-action": op.action, "x-kubernetes-group-version-kind": gvkOf(op.of),
		"consumes": types, "produces": types, "responses": object{"200": ok}}
	if op.typ == nil {
		return out
	}
	ref := object{"$ref": at + schemaName(op.typ)}
	ok["schema"] = ref
	if op.writes() {
		body := object{"name": "body", "in": "body", "required": true, "schema": ref}
		if op.action == "patch" {
			body["schema"] = object{"type": "object"}
		}
		params := []object{body}
		for _, name := range writeOptions {
			params = append(params, object{"name": name, "in": "query", "type": "string"})
		}
		out["parameters"] = params
	}
	return out
}
