package apply

import (
	_ "embed" // the schema
	"sync"

	"k8s.io/apimachinery/pkg/util/managedfields"
	"sigs.k8s.io/structured-merge-diff/v6/typed"

	"minik8s/internal/api"
)

//go:generate go test . -run TestSchemaIsUpstreams -update

//go:embed schema.yaml
var schemaYAML string

// types returns the schema as the field managers read it, parsed at the first call.
var types = sync.OnceValues(func() (managedfields.TypeConverter, error) {
	parser, err := typed.NewParser(typed.YAMLObject(schemaYAML))
	if err != nil {
		return nil, err
	}
	return managedfields.NewSchemeTypeConverter(api.Scheme, parser), nil
})
