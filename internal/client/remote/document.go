package remote

import (
	"encoding/json"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"minik8s/internal/api"
)

// document is an object of a kind that is not compiled in.
type document struct {
	unstructured.Unstructured
	kind *api.Kind
}

func newDocument(k *api.Kind) *document {
	return &document{Unstructured: unstructured.Unstructured{Object: map[string]any{}}, kind: k}
}

// APIKind implements api.HasKind.
func (d *document) APIKind() *api.Kind { return d.kind }

// DeepCopyObject implements runtime.Object.
func (d *document) DeepCopyObject() runtime.Object {
	return &document{Unstructured: *d.DeepCopy(), kind: d.kind}
}

// UnmarshalJSON reads an object also if it does not say its kind, as in a list.
func (d *document) UnmarshalJSON(data []byte) error {
	d.Object = map[string]any{}
	return utiljson.Unmarshal(data, &d.Object)
}

// documentList is a list of them.
type documentList struct {
	metav1.TypeMeta
	metav1.ListMeta
	Items []*document
	kind  *api.Kind
}

// DeepCopyObject implements runtime.Object.
func (l *documentList) DeepCopyObject() runtime.Object {
	c := *l
	c.Items = slices.Clone(l.Items)
	for i, d := range l.Items {
		c.Items[i] = d.DeepCopyObject().(*document)
	}
	return &c
}

// UnmarshalJSON gives the items their kind.
func (l *documentList) UnmarshalJSON(data []byte) error {
	var raw struct {
		metav1.TypeMeta `json:",inline"`
		metav1.ListMeta `json:"metadata"`
		Items           []json.RawMessage `json:"items"`
	}
	if err := json.Unmarshal(data, &raw); err != nil {
		return err
	}
	l.TypeMeta, l.ListMeta, l.Items = raw.TypeMeta, raw.ListMeta, make([]*document, len(raw.Items))
	for i, item := range raw.Items {
		l.Items[i] = newDocument(l.kind)
		if err := json.Unmarshal(item, l.Items[i]); err != nil {
			return err
		}
	}
	return nil
}
