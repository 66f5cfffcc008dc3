package containerd

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"minik8s/internal/kubelet/containerd/sandbox"
)

func TestLogFormatAndRotation(t *testing.T) {
	path := filepath.Join(t.TempDir(), "0.log")
	l, err := openLog(path, 0, 5, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	out := &lines{stream: "stdout", to: l}
	long := strings.Repeat("x", maxLine)
	// In pieces of every size, the result is the same.
	text := "one\n\n" + long + "\n" + long + "y\n" + long + long + "\nlast"
	for len(text) > 0 {
		n := min(len(text), 1000)
		out.feed([]byte(text[:n]))
		text = text[n:]
	}
	out.end()
	l.close()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for line := range strings.Lines(string(data)) {
		f := strings.SplitN(strings.TrimSuffix(line, "\n"), " ", 4)
		if len(f) != 4 || len(f[0]) != len("2016-10-06T00:17:09.669794202Z") || f[1] != "stdout" {
			t.Fatalf("not the format: %.80q", line)
		}
		got = append(got, f[2]+" "+strings.ReplaceAll(f[3], long, "LONG"))
	}
	want := []string{"F one", "F ", "F LONG", "P LONG", "F y", "P LONG", "F LONG", "P last"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}

	l, err = openLog(path, 1000, 3, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	for i := range 200 {
		l.write("stderr", false, fmt.Appendf(nil, "line %d", i))
	}
	l.close()
	files, err := filepath.Glob(path + "*")
	if err != nil || len(files) != 3 {
		t.Errorf("after rotation there are %v, %v; want 3", files, err)
	}
	if st, err := os.Stat(path); err != nil || st.Size() > 1000 {
		t.Errorf("the current one: %v, %v", st, err)
	}
}

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

// What earlier versions have written down about pods that still run is read.
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
