package plan

import (
	"strings"
	"testing"
)

func TestCircle(t *testing.T) {
	for name, x := range map[string]struct {
		waits map[string]string // job: those it waits for
		want  string
	}{
		"nothing":                   {map[string]string{}, ""},
		"a row":                     {map[string]string{"a": "b", "b": "c"}, ""},
		"itself":                    {map[string]string{"a": "a"}, "a a"},
		"two":                       {map[string]string{"a": "b", "b": "a"}, "a b a"},
		"three, by a side way":      {map[string]string{"a": "x b", "b": "x c", "c": "a", "x": "y"}, "a b c a"},
		"it waits for a circle":     {map[string]string{"a": "b", "b": "c", "c": "b"}, ""},
		"two ways to the same":      {map[string]string{"a": "b c", "b": "d", "c": "d"}, ""},
		"its circle, and one below": {map[string]string{"a": "b", "b": "c a", "c": "b"}, "a b a"},
	} {
		got := Circle("a", func(job string) []string { return strings.Fields(x.waits[job]) })
		if strings.Join(got, " ") != x.want {
			t.Errorf("%s: %v, want %s", name, got, x.want)
		}
	}
}
