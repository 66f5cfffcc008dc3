package patch

import (
	"encoding/json"
	"strings"

	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"minik8s/internal/api"
)

// checkStrategic finds what would make apimachinery's strategic merge panic: a merge key that is not a plain value,
// or a directive that lists something other than plain values. The schema, read from the kind's Go type, says which
// lists have a merge key.
func checkStrategic(kind *api.Kind, patch []byte) error {
	var doc map[string]any
	if err := json.Unmarshal(patch, &doc); err != nil {
		return err
	}
	meta, err := strategicpatch.NewPatchMetaFromStruct(kind.New())
	if err != nil {
		return err
	}
	if err := checkDirectives(doc, nil); err != nil {
		return err
	}
	return checkKeys(doc, meta, nil)
}

// The directives of a strategic merge patch that hold lists: the order of a list's merge keys, the fields to keep,
// the plain items to delete.
const (
	orderPrefix  = "$setElementOrder/"
	retainKeys   = "$retainKeys"
	deletePrefix = "$deleteFromPrimitiveList/"
)

func isPlain(v any) bool {
	switch v.(type) {
	case map[string]any, []any:
		return false
	}
	return true
}

func checkDirectives(v any, path *field.Path) error {
	switch v := v.(type) {
	case map[string]any:
		for key, value := range v {
			items, ok := value.([]any)
			if ok && (key == retainKeys || strings.HasPrefix(key, deletePrefix)) {
				for i, item := range items {
					if !isPlain(item) {
						return field.Invalid(path.Child(key).Index(i), "", "must be a plain value")
					}
				}
				continue
			}
			if err := checkDirectives(value, path.Child(key)); err != nil {
				return err
			}
		}
	case []any:
		for i, item := range v {
			if err := checkDirectives(item, path.Index(i)); err != nil {
				return err
			}
		}
	}
	return nil
}

func checkKeys(doc map[string]any, schema strategicpatch.LookupPatchMeta, path *field.Path) error {
	for key, value := range doc {
		name := strings.TrimPrefix(key, orderPrefix)
		below := path.Child(key)
		switch v := value.(type) {
		case map[string]any:
			sub, _, err := schema.LookupPatchMetadataForStruct(name)
			if err != nil {
				continue // a field that the schema does not know is merged as a plain map
			}
			if err := checkKeys(v, sub, below); err != nil {
				return err
			}
		case []any:
			sub, meta, err := schema.LookupPatchMetadataForSlice(name)
			if err != nil {
				continue
			}
			if err := checkItems(v, sub, meta.GetPatchMergeKey(), below); err != nil {
				return err
			}
		}
	}
	return nil
}

func checkItems(items []any, schema strategicpatch.LookupPatchMeta, mergeKey string, path *field.Path) error {
	for i, item := range items {
		m, ok := item.(map[string]any)
		if !ok {
			continue
		}
		if mergeKey != "" && !isPlain(m[mergeKey]) {
			return field.Invalid(path.Index(i).Child(mergeKey), "", "by this field the items of the list are told apart: it must be a plain value")
		}
		if err := checkKeys(m, schema, path.Index(i)); err != nil {
			return err
		}
	}
	return nil
}
