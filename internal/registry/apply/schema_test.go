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
		const meta = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"
		takeType(t, meta, from, taken)
		taken[name] = schema.TypeDef{Name: name, Atom: ofType(reflect.TypeOf(kind.New()).Elem(), meta)}
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

// ofType is the schema of one of our own types. A list is replaced as a whole, unless its items have the merge key
// that its tag names, as in Kubernetes' types.
func ofType(t reflect.Type, meta string) schema.Atom {
	scalar := func(s schema.Scalar) schema.Atom { return schema.Atom{Scalar: &s} }
	switch t.Kind() {
	case reflect.Pointer:
		return ofType(t.Elem(), meta)
	case reflect.String:
		return scalar(schema.String)
	case reflect.Bool:
		return scalar(schema.Boolean)
	case reflect.Slice:
		return schema.Atom{List: &schema.List{ElementType: schema.TypeRef{Inlined: ofType(t.Elem(), meta)}, ElementRelationship: schema.Atomic}}
	case reflect.Map:
		return schema.Atom{Map: &schema.Map{ElementType: schema.TypeRef{Inlined: ofType(t.Elem(), meta)}}}
	case reflect.Struct:
		m := &schema.Map{}
		for i := range t.NumField() {
			f := t.Field(i)
			name, opts, _ := strings.Cut(f.Tag.Get("json"), ",")
			switch {
			case name == "metadata":
				m.Fields = append(m.Fields, schema.StructField{Name: name, Type: schema.TypeRef{NamedType: &meta}})
			case name == "" && strings.Contains(opts, "inline"):
				m.Fields = append(m.Fields, ofType(f.Type, meta).Map.Fields...)
			case name != "" && name != "-":
				atom := ofType(f.Type, meta)
				if key := f.Tag.Get("patchMergeKey"); key != "" && atom.List != nil {
					atom.List.ElementRelationship, atom.List.Keys = schema.Associative, []string{key}
				}
				m.Fields = append(m.Fields, schema.StructField{Name: name, Type: schema.TypeRef{Inlined: atom}})
			}
		}
		return schema.Atom{Map: m}
	}
	return scalar(schema.Numeric)
}
