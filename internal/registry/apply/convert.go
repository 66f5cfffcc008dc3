package apply

import (
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"minik8s/internal/api"
)

// converter converts objects between versions, as the scheme does, and between a stored kind and its views. So a
// manager keeps its fields in every version.
type converter struct{ *runtime.Scheme }

// ConvertToVersion implements runtime.ObjectConvertor.
func (c converter) ConvertToVersion(in runtime.Object, version runtime.GroupVersioner) (runtime.Object, error) {
	gvk := in.GetObjectKind().GroupVersionKind()
	for _, view := range api.Views {
		if view.View.Stored == nil { // nobody writes it
			continue
		}
		from, to, convert := view, view.View.Of, view.View.Stored
		if gvk == to.GVK() {
			from, to, convert = to, from, view.View.Shown
		}
		if gvk != from.GVK() || accepts(version, gvk) || !accepts(version, to.GVK()) {
			continue
		}
		obj := from.New()
		if u, ok := in.(runtime.Unstructured); ok {
			if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.UnstructuredContent(), obj); err != nil {
				return nil, err
			}
		} else {
			obj = in.(api.Object)
		}
		out := convert(obj)
		out.GetObjectKind().SetGroupVersionKind(to.GVK())
		return out, nil
	}
	return c.Scheme.ConvertToVersion(in, version)
}

func accepts(version runtime.GroupVersioner, gvk schema.GroupVersionKind) bool {
	got, ok := version.KindForGroupVersionKinds([]schema.GroupVersionKind{gvk})
	return ok && got == gvk
}
