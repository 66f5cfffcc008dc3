package handlers

import (
	"slices"
	"testing"

	"minik8s/internal/api"
)

// The table of kinds says which subresources there are, and what discovery tells of their verbs. Each has its routes
// here, with just these verbs, and there is no route that no kind has.
func TestRoutesAreThoseOfTheTable(t *testing.T) {
	used := map[string]bool{"status": true}
	for _, kind := range api.Kinds {
		for _, sub := range kind.Subresources {
			used[sub.Name] = true
			var verbs []string
			for method, r := range subroutes[sub.Name] {
				if r.serve == nil {
					t.Errorf("%s/%s: %s is not served", kind, sub.Name, method)
				}
				verbs = append(verbs, r.verb)
			}
			if slices.Contains(sub.Verbs, "get") && len(subroutes[sub.Name]) == 2 && !slices.Contains(verbs, "get") {
				verbs = append(verbs, "get") // a stream may be asked for by GET, and needs the right to create
			}
			slices.Sort(verbs)
			verbs = slices.DeleteFunc(slices.Compact(verbs), func(v string) bool { return v == "options" }) // discovery names no OPTIONS
			if !slices.Equal(verbs, slices.Sorted(slices.Values(sub.Verbs))) {
				t.Errorf("%s/%s: the routes have %v, the table says %v", kind, sub.Name, verbs, sub.Verbs)
			}
		}
	}
	for name := range subroutes {
		if !used[name] {
			t.Errorf("no kind has the subresource %s", name)
		}
	}
}
