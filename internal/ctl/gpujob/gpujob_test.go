package gpujob

import (
	"testing"

	"minik8s/internal/api/minik8s"
)

// A host is named as where its keys are shown.
func TestAddress(t *testing.T) {
	for want, h := range map[string]minik8s.SSHHost{"login.example:22": {Host: "login.example"}, "[2001:db8::1]:2222": {Host: "2001:db8::1", Port: 2222}} {
		if got := address(&h); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

func TestForeign(t *testing.T) {
	for path, want := range map[string]string{`D:\SJTU\pkg\sum_matrix`: "sum_matrix", `C:`: "results", `D:\`: "results", `\\host\share\x`: "x", `D:\a\..`: "results"} {
		if !foreign(path) {
			t.Errorf("%s can be here", path)
		}
		if got := foreignBase(path); got != want {
			t.Errorf("%s: %s, want %s", path, got, want)
		}
	}
	for _, path := range []string{"/root/gpu", "results", "./a", "a/b"} {
		if foreign(path) {
			t.Errorf("%s cannot be here", path)
		}
	}
}
