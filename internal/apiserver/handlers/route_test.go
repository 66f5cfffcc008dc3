package handlers

import (
	"slices"
	"testing"

	"minik8s/internal/api"
	"minik8s/internal/registry/strategy"
)

// The table of kinds says which subresources there are, and with which verbs. Each is served: as a part, a form or an
// action that its strategy names, or as a connection that has its routes here.
func TestSubresourcesAreThoseOfTheTable(t *testing.T) {
	used := map[string]bool{}
	rows := strategy.All(strategy.Settings{})
	for _, kind := range api.Kinds {
		for _, sub := range kind.Subresources {
			if !sub.Connects {
				row, named := rows[kind].Subresources[sub.Name]
				if !named && sub.Name != api.StatusSubresource {
					t.Errorf("%s/%s: no strategy says what it does", kind, sub.Name)
				}
				if slices.Contains(sub.Verbs, "create") != (row.Action != nil) {
					t.Errorf("%s/%s: an action is a create, and nothing else is", kind, sub.Name)
				}
				continue
			}
			path := kind.Plural + "/" + sub.Name
			used[path] = true
			routes := connections[path]
			if routes == nil { // a part answers, by as many of these as the table says
				routes = map[string]route{}
				for method, r := range connected {
					if slices.Contains(sub.Verbs, r.verb) {
						routes[method] = r
					}
				}
			}
			var verbs []string
			for method, r := range routes {
				if r.serve == nil {
					t.Errorf("%s/%s: %s is not served", kind, sub.Name, method)
				}
				verbs = append(verbs, r.verb)
			}
			if slices.Contains(sub.Verbs, "get") && len(connections[path]) == 2 && !slices.Contains(verbs, "get") {
				verbs = append(verbs, "get") // a stream may be asked for by GET, and needs the right to create
			}
			slices.Sort(verbs)
			verbs = slices.DeleteFunc(slices.Compact(verbs), func(v string) bool { return v == "options" }) // discovery names no OPTIONS
			if !slices.Equal(verbs, slices.Sorted(slices.Values(sub.Verbs))) {
				t.Errorf("%s/%s: the routes have %v, the table says %v", kind, sub.Name, verbs, sub.Verbs)
			}
		}
	}
	for name := range connections {
		if !used[name] {
			t.Errorf("no kind has the subresource %s", name)
		}
	}
}
