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

// Metadata is a map of an object's metadata in which people set keys.
type Metadata struct {
	// Field is its name.
	Field string

	done  string // what is said when it was changed
	of    func(api.Object) map[string]string
	wrong func(key, value string) []string
}

// The two maps.
var (
	Labels = Metadata{"labels", "labeled", api.Object.GetLabels, func(key, value string) []string {
		return append(validation.IsQualifiedName(key), validation.IsValidLabelValue(value)...)
	}}
	Annotations = Metadata{"annotations", "annotated", api.Object.GetAnnotations, func(key, _ string) []string {
		return validation.IsQualifiedName(key)
	}}
)

// Marks are keys of such a map to set and to remove.
type Marks struct {
	set    map[string]string
	remove []string
}

// Parse takes KEY=VALUE and KEY- away from arguments; the others name objects.
func (m *Metadata) Parse(args []string) (names []string, marks Marks, err error) {
	marks.set = map[string]string{}
	for _, arg := range args {
		key, value, ok := strings.Cut(arg, "=")
		switch {
		case ok:
			if wrong := m.wrong(key, value); len(wrong) > 0 {
				return nil, marks, exit.Usagef("%q: %s", arg, strings.Join(wrong, "; "))
			}
			if old, twice := marks.set[key]; twice && old != value {
				return nil, marks, exit.Usagef("%q is given twice, as %q and as %q", key, old, value)
			}
			marks.set[key] = value
		case strings.HasSuffix(arg, "-") && len(arg) > 1:
			marks.remove = append(marks.remove, strings.TrimSuffix(arg, "-"))
		default:
			names = append(names, arg)
		}
	}
	for _, key := range marks.remove {
		if _, both := marks.set[key]; both {
			return nil, marks, exit.Usagef("%q is both set and removed", key)
		}
	}
	if len(marks.set)+len(marks.remove) == 0 {
		return nil, marks, exit.Usagef("what shall be set (KEY=VALUE) or removed (KEY-)?")
	}
	return names, marks, nil
}

// Mark changes one object. Keys that have another value are kept and told, unless overwrite is true.
func (m *Metadata) Mark(ctx context.Context, s *session.Session, obj api.Object, marks Marks, overwrite bool) error {
	change, kept := marks.against(m.of(obj), overwrite)
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

// against is what changes of the keys that an object has now (nil removes one), and the keys that are kept.
func (marks *Marks) against(now map[string]string, overwrite bool) (change map[string]any, kept []string) {
	change = map[string]any{}
	for key, value := range marks.set {
		old, there := now[key]
		switch {
		case there && old == value:
		case there && !overwrite:
			kept = append(kept, key+"="+old)
		default:
			change[key] = value
		}
	}
	for _, key := range marks.remove {
		if _, there := now[key]; there {
			change[key] = nil
		}
	}
	sort.Strings(kept)
	return change, kept
}
