package console

import "testing"

func TestName(t *testing.T) {
	for name, want := range map[string]string{
		"a b/ü'\"$x": "a b/ü'\"$x", "": "",
		"\x1b[2Jx": `"\x1b[2Jx"`, "two\nlines": `"two\nlines"`, "a\x80": `"a\x80"`, "\u202etxt": `"\u202etxt"`, "\u009b1m": `"\u009b1m"`,
	} {
		if got := Name(name); got != want {
			t.Errorf("%q: %s, want %s", name, got, want)
		}
	}
}
