package change

import (
	"context"
	"sort"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"minik8s/internal/api"
	"minik8s/internal/ctl/brief"
	"minik8s/internal/ctl/exit"
	"minik8s/internal/ctl/session"
)

// MapField is a map in an object's metadata in which people set keys.
type MapField struct {
	// Field is its name.
	Field string

	done  string // what is printed after a change
	of    func(api.Object) map[string]string
	wrong func(key, value string) []string
}

// The two maps.
var (
	Labels = MapField{"labels", "labeled", api.Object.GetLabels, func(key, value string) []string {
		return append(validation.IsQualifiedName(key), validation.IsValidLabelValue(value)...)
	}}
	Annotations = MapField{"annotations", "annotated", api.Object.GetAnnotations, func(key, _ string) []string {
		return validation.IsQualifiedName(key)
	}}
)

// Edit says which keys of the map to set and which to remove.
type Edit struct {
	set    map[string]string
	remove []string
}

// Parse takes KEY=VALUE and KEY- out of the arguments; the remaining ones name objects.
func (m *MapField) Parse(args []string) (names []string, edit Edit, err error) {
	edit.set = map[string]string{}
	for _, arg := range args {
		key, value, ok := strings.Cut(arg, "=")
		switch {
		case ok:
			if wrong := m.wrong(key, value); len(wrong) > 0 {
				return nil, edit, exit.Usagef("%q: %s", arg, strings.Join(wrong, "; "))
			}
			if old, twice := edit.set[key]; twice && old != value {
				return nil, edit, exit.Usagef("%q is given twice, as %q and as %q", key, old, value)
			}
			edit.set[key] = value
		case strings.HasSuffix(arg, "-") && len(arg) > 1:
			edit.remove = append(edit.remove, strings.TrimSuffix(arg, "-"))
		default:
			names = append(names, arg)
		}
	}
	for _, key := range edit.remove {
		if _, both := edit.set[key]; both {
			return nil, edit, exit.Usagef("%q is both set and removed", key)
		}
	}
	if len(edit.set)+len(edit.remove) == 0 {
		return nil, edit, exit.Usagef("what shall be set (KEY=VALUE) or removed (KEY-)?")
	}
	return names, edit, nil
}

// Apply edits one object. If a key already has another value and overwrite is false, the value is kept and Apply fails.
func (m *MapField) Apply(ctx context.Context, s *session.Session, obj api.Object, edit Edit, overwrite bool) error {
	change, kept := edit.against(m.of(obj), overwrite)
	name := brief.RefOf(obj)
	if len(change) > 0 {
		if err := Merge(ctx, s, obj, map[string]any{"metadata": map[string]any{m.Field: change}}); err != nil {
			return err
		}
		s.Say("%s %s", name, m.done)
	}
	if len(kept) > 0 {
		return exit.Failf(exit.Conflict, "%s has %s already, which was kept; --overwrite changes it", name, strings.Join(kept, ", "))
	}
	if len(change) == 0 {
		s.Say("%s not changed", name)
	}
	return nil
}

// against compares an edit with an object's present keys. It returns which keys change (nil removes a key), and which
// are kept because they have another value.
func (edit *Edit) against(now map[string]string, overwrite bool) (change map[string]any, kept []string) {
	change = map[string]any{}
	for key, value := range edit.set {
		old, there := now[key]
		switch {
		case there && old == value:
		case there && !overwrite:
			kept = append(kept, key+"="+old)
		default:
			change[key] = value
		}
	}
	for _, key := range edit.remove {
		if _, there := now[key]; there {
			change[key] = nil
		}
	}
	sort.Strings(kept)
	return change, kept
}
