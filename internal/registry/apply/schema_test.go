package apply

import (
	"flag"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v2"
	"k8s.io/client-go/applyconfigurations"
	"sigs.k8s.io/structured-merge-diff/v6/schema"

	"minik8s/internal/api"
)

var update = flag.Bool("update", false, "write schema.yaml anew")

const header = `# Which fields the objects of the API have, and how their lists and maps are merged by server-side apply. Taken from
# the schema of Kubernetes' own clients, as far as our kinds reach; our own kinds come from their Go types.
# Made by: go generate ./internal/registry/apply
`

// TestSchemaIsUpstreams: schema.yaml says of every kind of the table what Kubernetes' schema says. With -update it
// is written.
func TestSchemaIsUpstreams(t *testing.T) {
	pods := api.Pods.New()
	pods.GetObjectKind().SetGroupVersionKind(api.Pods.GVK())
	typed, err := applyconfigurations.NewTypeConverter(api.Scheme).ObjectToTyped(pods)
	if err != nil {
		t.Fatal(err)
	}
	from := map[string]schema.TypeDef{}
	for _, def := range typed.Schema().Types {
		from[def.Name] = def
	}
	taken := map[string]schema.TypeDef{}
	for _, kind := range slices.Concat(api.Kinds, api.Views) {
		name, err := api.Scheme.ToOpenAPIDefinitionName(kind.GVK())
		if err != nil {
			t.Fatal(err)
		}
		if _, ok := from[name]; ok {
			takeType(t, name, from, taken)
			continue
		}
		own := ofType(reflect.TypeOf(kind.New()).Elem(), func(part reflect.Type) string {
			name := "io." + strings.ReplaceAll(strings.Replace(part.PkgPath(), "k8s.io", "k8s", 1), "/", ".") + "." + part.Name()
			if _, ok := from[name]; !ok {
				return ""
			}
			takeType(t, name, from, taken)
			return name
		})
		taken[name] = schema.TypeDef{Name: name, Atom: own}
	}
	takeType(t, "__untyped_atomic_", from, taken)
	takeType(t, "__untyped_deduced_", from, taken)
	var want schema.Schema
	for _, def := range taken {
		want.Types = append(want.Types, def)
	}
	slices.SortFunc(want.Types, func(a, b schema.TypeDef) int { return strings.Compare(a.Name, b.Name) })
	body, err := yaml.Marshal(map[string]any{"types": want.Types})
	if err != nil {
		t.Fatal(err)
	}
	text := header + string(body)
	if *update {
		if err := os.WriteFile("schema.yaml", []byte(text), 0o644); err != nil { //nolint:gosec // it is source
			t.Fatal(err)
		}
		return
	}
	if text != schemaYAML {
		t.Error("schema.yaml is not what Kubernetes' schema says of our kinds: go generate ./internal/registry/apply")
	}
}

// takeType takes a type and all that it refers to.
func takeType(t *testing.T, name string, from, into map[string]schema.TypeDef) {
	t.Helper()
	if _, ok := into[name]; ok {
		return
	}
	def, ok := from[name]
	if !ok {
		t.Fatalf("the schema has no type %s", name)
	}
	into[name] = def
	var walk func(a schema.Atom)
	ref := func(r schema.TypeRef) {
		if r.NamedType != nil {
			takeType(t, *r.NamedType, from, into)
		}
		walk(r.Inlined)
	}
	walk = func(a schema.Atom) {
		if a.List != nil {
			ref(a.List.ElementType)
		}
		if a.Map != nil {
			ref(a.Map.ElementType)
			for _, f := range a.Map.Fields {
				ref(f.Type)
			}
		}
	}
	walk(def.Atom)
}

// ofType is the schema of one of our own types; upstream names the type of a part that Kubernetes has, or is empty. A list
// is replaced as a whole, unless its items have the merge key that its tag names, as in Kubernetes' types.
func ofType(t reflect.Type, upstream func(reflect.Type) string) schema.Atom {
	scalar := func(s schema.Scalar) schema.Atom { return schema.Atom{Scalar: &s} }
	ref := func(t reflect.Type) schema.TypeRef {
		if t.Kind() == reflect.Pointer {
			t = t.Elem()
		}
		if name := upstream(t); name != "" {
			return schema.TypeRef{NamedType: &name}
		}
		if written, ok := reflect.Zero(t).Interface().(interface{ OpenAPISchemaType() []string }); ok && len(written.OpenAPISchemaType()) == 0 {
			return schema.TypeRef{NamedType: new("__untyped_atomic_")} // any JSON, replaced as a whole
		}
		return schema.TypeRef{Inlined: ofType(t, upstream)}
	}
	if written, ok := reflect.Zero(t).Interface().(interface{ OpenAPISchemaType() []string }); ok && t.Kind() != reflect.Pointer {
		return scalar(schema.Scalar(written.OpenAPISchemaType()[0])) // a duration is written as a string
	}
	switch t.Kind() {
	case reflect.Pointer:
		return ofType(t.Elem(), upstream)
	case reflect.String:
		return scalar(schema.String)
	case reflect.Bool:
		return scalar(schema.Boolean)
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Uint8 { // in base64
			return scalar(schema.String)
		}
		return schema.Atom{List: &schema.List{ElementType: ref(t.Elem()), ElementRelationship: schema.Atomic}}
	case reflect.Map:
		return schema.Atom{Map: &schema.Map{ElementType: ref(t.Elem())}}
	case reflect.Struct:
		m := &schema.Map{}
		for i := range t.NumField() {
			f := t.Field(i)
			name, opts, _ := strings.Cut(f.Tag.Get("json"), ",")
			switch {
			case name == "" && f.Anonymous || strings.Contains(opts, "inline"):
				m.Fields = append(m.Fields, ofType(f.Type, upstream).Map.Fields...)
			case name != "" && name != "-":
				of := ref(f.Type)
				if key := f.Tag.Get("patchMergeKey"); key != "" && of.Inlined.List != nil {
					of.Inlined.List.ElementRelationship, of.Inlined.List.Keys = schema.Associative, []string{key}
				}
				m.Fields = append(m.Fields, schema.StructField{Name: name, Type: of})
			}
		}
		return schema.Atom{Map: m}
	}
	return scalar(schema.Numeric)
}
