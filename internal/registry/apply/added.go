package apply

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"

	"minik8s/internal/api"
)

// added stands in for the scheme for a kind that was added while the daemon runs. Such a kind has one version and no
// schema: as in a CustomResourceDefinition without one, the type of each field is deduced from the objects, and a list is
// replaced as a whole.
type added struct{ kind *api.Kind }

func isAdded(kind *api.Kind) bool { return !slices.Contains(api.Builtin(), kind) }

func (a added) manager(sub string) (*managedfields.FieldManager, error) {
	gvk := a.kind.GVK()
	return managedfields.NewDefaultFieldManager(managedfields.NewDeducedTypeConverter(), a, a, a, gvk, gvk.GroupVersion(), sub, untouched(a.kind, sub))
}

// New implements runtime.ObjectCreater.
func (a added) New(schema.GroupVersionKind) (runtime.Object, error) {
	obj := a.kind.New()
	obj.GetObjectKind().SetGroupVersionKind(a.kind.GVK())
	return obj, nil
}

// Default implements runtime.ObjectDefaulter.
func (added) Default(runtime.Object) {}

// ConvertToVersion implements runtime.ObjectConvertor: what is a map becomes an object of the kind.
func (a added) ConvertToVersion(in runtime.Object, _ runtime.GroupVersioner) (runtime.Object, error) {
	u, ok := in.(runtime.Unstructured)
	if !ok {
		return in, nil
	}
	obj := a.kind.New()
	err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.UnstructuredContent(), obj)
	return obj, err
}

// Convert implements runtime.ObjectConvertor. The field managers do not call it.
func (a added) Convert(in, out, _ any) error {
	return fmt.Errorf("a %s cannot be converted from %T to %T", a.kind.Kind, in, out)
}

// ConvertFieldLabel implements runtime.ObjectConvertor. The field managers do not call it.
func (added) ConvertFieldLabel(_ schema.GroupVersionKind, label, value string) (string, string, error) {
	return label, value, nil
}
