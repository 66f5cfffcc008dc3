package storage

import (
	"strings"

	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"

	"minik8s/internal/api"
)

// Selector decides which entries a list or watch shows.
type Selector struct {
	Namespace string // empty: all
	Labels    labels.Selector
	Fields    fields.Selector
	// FieldSet returns the fields that a kind can be selected by, besides name and namespace; nil: none.
	FieldSet func(obj api.Object) fields.Set
}

func (s *Selector) all() bool { return s.Labels == nil && s.Fields == nil }

// matches ignores the namespace; see inNamespace.
func (s *Selector) matches(e *Entry) bool {
	if s.all() {
		return true
	}
	obj := e.Object()
	if s.Labels != nil && !s.Labels.Matches(labels.Set(obj.GetLabels())) {
		return false
	}
	return s.Fields == nil || s.Fields.Matches(s.fieldSet(obj))
}

func (s *Selector) fieldSet(obj api.Object) fields.Set {
	set := fields.Set{}
	if s.FieldSet != nil {
		set = s.FieldSet(obj)
	}
	set["metadata.name"], set["metadata.namespace"] = obj.GetName(), obj.GetNamespace()
	return set
}

func (s *Selector) inNamespace(e *Entry) bool {
	return s.Namespace == "" || strings.HasPrefix(e.key, s.Namespace) && len(e.key) > len(s.Namespace) && e.key[len(s.Namespace)] == '/'
}
