package openapi

import (
	"encoding/json"
	"net/http"
	"reflect"
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
		t := reflect.TypeOf(k.New()).Elem()
		schemas.add(t, k)
		base := "/" + gvPath(k.Group, k.Version)
		var params []object
		if k.Namespaced {
			base += "/namespaces/{namespace}"
			params = append(params, pathParameter("namespace"))
		}
		base += "/" + k.Plural
		op := func(action string) object { return operationV2(k, action, schemas.at+schemaName(t)) }
		collection := object{"post": op("post"), "parameters": params}
		paths[base] = collection
		if k.Asked {
			continue
		}
		collection["get"] = op("list")
		paths[base+"/{name}"] = object{"get": op("get"), "put": op("put"), "patch": op("patch"), "delete": op("delete"),
			"parameters": append([]object{pathParameter("name")}, params...)}
	}
	return object{"swagger": "2.0", "info": object{"title": "minik8s", "version": "v1"}, "paths": paths, "definitions": schemas.byName}
}

func pathParameter(name string) object {
	return object{"name": name, "in": "path", "required": true, "type": "string"}
}

func operationV2(k *api.Kind, action, ref string) object {
	op := operation(k, action)
	op["consumes"], op["produces"] = []string{encoding.JSONType, encoding.YAMLType, encoding.ProtobufType}, []string{encoding.JSONType, encoding.YAMLType, encoding.ProtobufType}
	op["responses"] = object{"200": object{"description": "OK", "schema": object{"$ref": ref}}}
	if params, ok := op["parameters"].([]object); ok {
		body := object{"name": "body", "in": "body", "required": true, "schema": object{"$ref": ref}}
		if action == "patch" {
			body["schema"] = object{"type": "object"}
		}
		list := []object{body}
		for _, p := range params {
			list = append(list, object{"name": p["name"], "in": "query", "type": "string"})
		}
		op["parameters"] = list
	}
	return op
}
