package gpujob

import "testing"

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
