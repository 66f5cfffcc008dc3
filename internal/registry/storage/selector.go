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
	// Gettable are the fields that a kind can be selected by, besides name and namespace, and how each is read.
	Gettable map[string]func(obj api.Object) string
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
	return s.Fields == nil || s.Fields.Matches(gettable{obj, s.Gettable})
}

// gettable is an object whose fields are read one by one, when a selector asks for them: each event is compared with the selector
// of every node's watch.
type gettable struct {
	obj api.Object
	get map[string]func(obj api.Object) string
}

// Has implements fields.Fields.
func (g gettable) Has(field string) bool {
	return field == "metadata.name" || field == "metadata.namespace" || g.get[field] != nil
}

// Get implements fields.Fields.
func (g gettable) Get(field string) string {
	switch field {
	case "metadata.name":
		return g.obj.GetName()
	case "metadata.namespace":
		return g.obj.GetNamespace()
	}
	if get := g.get[field]; get != nil {
		return get(g.obj)
	}
	return ""
}

func (s *Selector) inNamespace(e *Entry) bool {
	return s.Namespace == "" || strings.HasPrefix(e.key, s.Namespace) && len(e.key) > len(s.Namespace) && e.key[len(s.Namespace)] == '/'
}
