package registry

import (
	"k8s.io/apimachinery/pkg/fields"

	"minik8s/internal/api"
)

// shape is how the client of a request sees the object: as it is stored, as another version of its kind, or in the
// form of a subresource.
type shape struct {
	q    *Request
	form *Form
}

func (r *Registry) shapeOf(q *Request) shape { return shape{q, r.Strategy(q.Kind).FormOf(q.Sub)} }

// FormOf returns the form in which a subresource is read and written; nil if that is the object's own.
func (s *Strategy) FormOf(sub string) *Form {
	if sub == "" {
		return nil
	}
	return s.Subresources[sub].Form
}

// kind returns the kind as the client sees it.
func (s shape) kind() *api.Kind {
	switch {
	case s.form != nil:
		return s.form.Kind
	case s.q.View != nil:
		return s.q.View
	}
	return s.q.Kind
}

// shown converts a stored object to what the client sees.
func (s shape) shown(obj api.Object) api.Object {
	switch {
	case s.form != nil:
		return s.form.Of(obj)
	case s.q.View != nil:
		out := s.q.View.View.Shown(obj)
		out.GetObjectKind().SetGroupVersionKind(s.q.View.GVK())
		return out
	}
	return obj
}

// Seen is the kind as the client sees it.
func (q *Request) Seen() *api.Kind {
	if q.View != nil {
		return q.View
	}
	return q.Kind
}

// Shown is an object as the client sees it. It is shared and must never be changed.
func (q *Request) Shown(e *Entry) api.Object { return shape{q: q}.shown(e.Object()) }

// stored converts the client's object, which is to replace old, to the stored kind. old is nil for a new object. The
// error is 422.
func (s shape) stored(given, old api.Object) (api.Object, error) {
	switch {
	case s.form != nil:
		return s.form.into(old, given)
	case s.q.View != nil:
		out := s.q.View.View.Stored(given)
		out.GetObjectKind().SetGroupVersionKind(s.q.Kind.GVK())
		return out, nil
	}
	return given, nil
}

// Of returns an object in this form.
func (f *Form) Of(obj api.Object) api.Object {
	out := f.Show(obj)
	out.GetObjectKind().SetGroupVersionKind(f.Kind.GVK())
	out.SetName(obj.GetName())
	out.SetNamespace(obj.GetNamespace())
	out.SetUID(obj.GetUID())
	out.SetResourceVersion(obj.GetResourceVersion())
	out.SetCreationTimestamp(obj.GetCreationTimestamp())
	return out
}

// into returns old with what given says. What given says of the object's identity and version is checked as in a
// write of the whole object.
func (f *Form) into(old, given api.Object) (api.Object, error) {
	obj := old.DeepCopyObject().(api.Object)
	if err := Invalid(f.Kind, old.GetName(), f.Take(obj, given)); err != nil {
		return nil, err
	}
	obj.SetUID(given.GetUID())
	obj.SetResourceVersion(given.GetResourceVersion())
	return obj, nil
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
