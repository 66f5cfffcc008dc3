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

// Fields keeps book of who manages which field. The zero value is ready.
type Fields struct {
	managers sync.Map // of targets, to *managedfields.FieldManager
}

// target is what a write is of: a kind's objects, or what lies below them.
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

// untouched are the fields that a write of this target leaves as they are whatever it says, so that nobody comes to
// manage them by it.
func untouched(kind *api.Kind, sub string) map[fieldpath.APIVersion]fieldpath.Filter {
	field := ""
	switch {
	case sub == "status":
		field = "spec"
	case kind.Status:
		field = "status"
	default:
		return nil
	}
	v := fieldpath.APIVersion(kind.APIVersion())
	return map[fieldpath.APIVersion]fieldpath.Filter{v: fieldpath.NewExcludeSetFilter(fieldpath.NewSet(fieldpath.MakePathOrDie(field)))}
}

// Applied is what becomes of live, which may be an empty object of the kind (or view), when manager applies config: the
// fields that it names are set, and those that it named before and does not name now are given up. A field that
// another manager has set otherwise is a conflict (409), unless force takes it over.
func (f *Fields) Applied(kind *api.Kind, sub string, live api.Object, config map[string]any, manager string, force bool) (api.Object, error) {
	m, err := f.manager(kind, sub)
	if err != nil {
		return nil, apierrors.NewInternalError(err)
	}
	obj, err := m.Apply(live, &unstructured.Unstructured{Object: config}, manager, force)
	if err != nil {
		if _, ok := err.(apierrors.APIStatus); ok { //nolint:errorlint // it is made by Apply itself
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

// Written notes in obj what manager has changed since live by a write that is no apply. Only objects that somebody
// has applied are kept book of; obj of others loses what a client may have put there.
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
