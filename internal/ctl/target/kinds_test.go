package target

import (
	"testing"

	"minik8s/internal/api"
)

// Words of kinds that are compiled in need no server.
func TestKindWords(t *testing.T) {
	for word, want := range map[string]*api.Kind{"PODS": api.Pods, "po": api.Pods, "Node": api.Nodes, "leases.coordination.k8s.io": api.Leases} {
		if kinds, err := Kinds(t.Context(), nil, word); err != nil || len(kinds) != 1 || kinds[0] != want {
			t.Errorf("%s: %v, %v", word, kinds, err)
		}
	}
	if kinds, err := Kinds(t.Context(), nil, "all"); err != nil || len(kinds) == 0 || kinds[0] != api.Pods {
		t.Errorf("all: %v, %v", kinds, err)
	}
}
