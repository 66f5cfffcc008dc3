package containerd

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"reflect"
	"testing"

	"minik8s/internal/kubelet/containerd/sandbox"
)

func TestStartFailure(t *testing.T) {
	for in, want := range map[string]string{
		`failed to create shim task: OCI runtime create failed: runc create failed: unable to start container process: error during container init: exec: "nosuch": executable file not found in $PATH: unknown`: `127 exec: "nosuch": executable file not found in $PATH`,
		`failed to create shim task: OCI runtime create failed: runc create failed: unable to start container process: error during container init: exec: "/x": permission denied: unknown`:                      `126 exec: "/x": permission denied`,
		`failed to create shim task: OCI runtime create failed: runc create failed: unable to start container process: error during container init: mkdir /etc/passwd: not a directory: unknown`:                 `128 mkdir /etc/passwd: not a directory`,
		`OCI runtime start failed: exec format error: unknown`: `126 exec format error`,
		`failed to start shim: no space left on device`:        ``,
	} {
		msg, code, ok := startFailure(errors.New(in))
		got := ""
		if ok {
			got = fmt.Sprintf("%d %s", code, msg)
		}
		if got != want {
			t.Errorf("%q\n got %q\nwant %q", in, got, want)
		}
	}
}

// Records of earlier versions about pods that still run can be read.
func TestStoredNamesStay(t *testing.T) {
	var rec record
	if err := json.Unmarshal([]byte(`{"Config":{"PodUID":"u"},"Slot":{"ID":"abc","Kinds":["net"],"Addr":"10.0.0.5"},"Whole":true}`), &rec); err != nil {
		t.Fatal(err)
	}
	if want := (sandbox.Sandbox{ID: "abc", Kinds: []string{"net"}, Addr: netip.MustParseAddr("10.0.0.5")}); !reflect.DeepEqual(rec.Sandbox, want) || !rec.Whole {
		t.Errorf("%+v", rec)
	}
	var m meta
	if err := json.Unmarshal([]byte(`{"ID":"1","PodUID":"u","Name":"c","Slot":"abc","Cgroup":"/x","OwnPIDs":true}`), &m); err != nil {
		t.Fatal(err)
	}
	if m.SandboxID != "abc" || m.PodUID != "u" || !m.OwnPIDs {
		t.Errorf("%+v", m)
	}
}
