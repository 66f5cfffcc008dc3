package apply

import (
	"fmt"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"minik8s/internal/api"
)

// Fields tracks which manager owns which field. The zero value is ready.
type Fields struct {
	managers sync.Map // of targets, to *managedfields.FieldManager
}

// target is what a write addresses: the objects of a kind, or a subresource of them.
type target struct {
	kind *api.Kind
	sub  string
}

func (f *Fields) manager(kind *api.Kind, sub string) (*managedfields.FieldManager, error) {
	if m, ok := f.managers.Load(target{kind, sub}); ok {
		return m.(*managedfields.FieldManager), nil
	}
	m, err := newManager(kind, sub)
	if err != nil {
		return nil, err
	}
	got, _ := f.managers.LoadOrStore(target{kind, sub}, m)
	return got.(*managedfields.FieldManager), nil
}

func newManager(kind *api.Kind, sub string) (*managedfields.FieldManager, error) {
	if isAdded(kind) {
		return added{kind}.manager(sub)
	}
	types, err := types()
	if err != nil {
		return nil, err
	}
	return managedfields.NewDefaultFieldManager(types, converter{api.Scheme}, api.Scheme, api.Scheme, kind.GVK(), kind.GVK().GroupVersion(), sub, untouched(kind, sub))
}

// untouched names the fields that a write to this target never changes, whatever its body says, and those that are not
// stored. Ignoring them keeps the writer from becoming their manager.
func untouched(kind *api.Kind, sub string) map[fieldpath.APIVersion]fieldpath.Filter {
	fields := fieldpath.NewSet()
	switch {
	case sub == api.StatusSubresource:
		fields.Insert(fieldpath.MakePathOrDie("spec"))
	case kind.HasStatus():
		fields.Insert(fieldpath.MakePathOrDie("status"))
	}
	for _, path := range kind.WriteOnly {
		var parts []any
		for _, p := range path {
			parts = append(parts, p)
		}
		fields.Insert(fieldpath.MakePathOrDie(parts...))
	}
	if fields.Empty() {
		return nil
	}
	return map[fieldpath.APIVersion]fieldpath.Filter{fieldpath.APIVersion(kind.APIVersion()): fieldpath.NewExcludeSetFilter(fields)}
}

// Applied returns live with config applied by manager; live may be an empty object of the kind (or view). The fields
// in config are set; fields that the manager set earlier and now leaves out are given up. If another manager has set
// a field to another value, the error is a conflict (409), unless force takes the field over.
func (f *Fields) Applied(kind *api.Kind, sub string, live api.Object, config map[string]any, manager string, force bool) (api.Object, error) {
	m, err := f.manager(kind, sub)
	if err != nil {
		return nil, apierrors.NewInternalError(err)
	}
	obj, err := m.Apply(live, &unstructured.Unstructured{Object: config}, manager, force)
	if err != nil {
		if _, ok := err.(apierrors.APIStatus); ok { //nolint:errorlint // Apply returns it unwrapped
			return nil, err
		}
		return nil, apierrors.NewBadRequest("the configuration cannot be applied: " + err.Error())
	}
	out, ok := obj.(api.Object)
	if !ok {
		return nil, apierrors.NewInternalError(fmt.Errorf("applying a %s made a %T", kind.Kind, obj))
	}
	return out, nil
}

// Written records in obj's managedFields which fields manager has changed since live by a write that is not an apply.
// Only objects that have been applied at least once are tracked; for others, managedFields sent by a client are
// dropped.
func (f *Fields) Written(kind *api.Kind, sub string, live, obj api.Object, manager string) {
	if len(live.GetManagedFields()) == 0 {
		obj.SetManagedFields(nil)
		return
	}
	m, err := f.manager(kind, sub)
	if err != nil {
		obj.SetManagedFields(live.GetManagedFields())
		return
	}
	if out, ok := m.UpdateNoErrors(live, obj, manager).(api.Object); ok {
		obj.SetManagedFields(out.GetManagedFields())
	}
}
