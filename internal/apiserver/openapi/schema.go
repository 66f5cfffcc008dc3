package openapi

import (
	"reflect"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// schemaSet holds the schemas by name, each Go type once.
type schemaSet struct {
	byName object
	at     string // the place of the schemas in the document
	// lone: a reference may have no sibling keys, as in OpenAPI v3.
	lone bool
}

func newSchemas(at string) schemaSet {
	return schemaSet{byName: object{}, at: at, lone: strings.HasPrefix(at, "#/components/")}
}

// schemaName returns Kubernetes' name of a type: io.k8s.api.core.v1.Pod.
func schemaName(t reflect.Type) string {
	parts := strings.Split(t.PkgPath(), "/")
	if len(parts) < 3 || !strings.HasPrefix(t.PkgPath(), "k8s.io/") {
		return strings.ReplaceAll(t.PkgPath(), "/", ".") + "." + t.Name()
	}
	return "io.k8s." + strings.Join(parts[1:], ".") + "." + t.Name()
}

// add adds the schema of a type; of is the kind that it is, nil if it is only part of others.
func (s schemaSet) add(t reflect.Type, of *schema.GroupVersionKind) {
	name := schemaName(t)
	schema, known := s.byName[name].(object)
	if !known {
		schema = object{"type": "object"}
		s.byName[name] = schema // before the fields, because types refer to themselves
	}
	if of != nil {
		schema["x-kubernetes-group-version-kind"] = []object{gvkOf(*of)}
	}
	if known {
		return
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

// fields adds a property per JSON field, with embedded structs flattened.
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

// scalars are the types whose JSON differs from their Go struct.
var scalars = map[string]object{
	"k8s.io/apimachinery/pkg/api/resource.Quantity":        {"type": "string", "x-kubernetes-quantity": true},
	"k8s.io/apimachinery/pkg/apis/meta/v1.Time":            {"type": "string", "format": "date-time"},
	"k8s.io/apimachinery/pkg/apis/meta/v1.MicroTime":       {"type": "string", "format": "date-time"},
	"k8s.io/apimachinery/pkg/apis/meta/v1.Duration":        {"type": "string"},
	"k8s.io/apimachinery/pkg/apis/meta/v1.FieldsV1":        {"type": "object"},
	"k8s.io/apimachinery/pkg/util/intstr.IntOrString":      {"x-kubernetes-int-or-string": true, "type": "string", "format": "int-or-string"},
	"k8s.io/apimachinery/pkg/runtime.RawExtension":         {"type": "object"},
	"minik8s/internal/api/minik8s.JSON":                    {"x-kubernetes-preserve-unknown-fields": true},
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
