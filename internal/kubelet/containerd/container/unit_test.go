package container

import (
	"encoding/json"
	"errors"
	"fmt"
	"testing"
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

// What earlier versions stored about containers that still run can be read.
func TestStoredNamesStay(t *testing.T) {
	var m Meta
	if err := json.Unmarshal([]byte(`{"ID":"1","PodUID":"u","Name":"c","Slot":"abc","Cgroup":"/x","OwnPIDs":true}`), &m); err != nil {
		t.Fatal(err)
	}
	if m.SandboxID != "abc" || m.PodUID != "u" || !m.OwnPIDs {
		t.Errorf("%+v", m)
	}
}
