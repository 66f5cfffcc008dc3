package containerd

import (
	"encoding/json"
	"net/netip"
	"reflect"
	"testing"

	"minik8s/internal/kubelet/containerd/sandbox"
)

// Records of earlier versions about pods that still run can be read.
func TestStoredNamesStay(t *testing.T) {
	var rec record
	if err := json.Unmarshal([]byte(`{"Config":{"PodUID":"u"},"Slot":{"ID":"abc","Kinds":["net"],"Addr":"10.0.0.5"},"Whole":true}`), &rec); err != nil {
		t.Fatal(err)
	}
	if want := (sandbox.Sandbox{ID: "abc", Kinds: []string{"net"}, Addr: netip.MustParseAddr("10.0.0.5")}); !reflect.DeepEqual(rec.Sandbox, want) || !rec.Whole {
		t.Errorf("%+v", rec)
	}
}
