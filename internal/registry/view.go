package registry

import (
	"k8s.io/apimachinery/pkg/fields"

	"minik8s/internal/api"
)

// served returns the kind as the client sees it.
func (q *Request) served() *api.Kind {
	if q.View != nil {
		return q.View
	}
	return q.Kind
}

// shown converts a stored object to the client's view; stored converts the client's object to the stored kind.
func (q *Request) shown(obj api.Object) api.Object {
	if q.View == nil {
		return obj
	}
	out := q.View.View.Shown(obj)
	out.GetObjectKind().SetGroupVersionKind(q.View.GVK())
	return out
}

func (q *Request) stored(obj api.Object) api.Object {
	if q.View == nil {
		return obj
	}
	out := q.View.View.Stored(obj)
	out.GetObjectKind().SetGroupVersionKind(q.Kind.GVK())
	return out
}

// StoredFields translates a field selector to the field names of the stored kind.
func StoredFields(view *api.Kind, sel fields.Selector) (fields.Selector, error) {
	if sel == nil || view == nil {
		return sel, nil
	}
	return sel.Transform(func(field, value string) (string, string, error) {
		if name, ok := view.View.Fields[field]; ok {
			field = name
		}
		return field, value, nil
	})
}
