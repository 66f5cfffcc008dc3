package suggest

import (
	"strings"
	"testing"
)

func TestNearest(t *testing.T) {
	for _, c := range []struct {
		word, want string
		words      []string
	}{
		{"wbe", "web", []string{"web", "db", "cache"}},
		{"pdos", "pods", []string{"pods", "nodes"}},
		{"web", "web-7f", []string{"web-7f", "other"}},
		{"zzz", "", []string{"web", "db"}},
		{"ab", "", []string{"cd", "abc-long"}},
		{"api-prot", "api-port", []string{"api-port", "pod-cidr"}},
		{"contianerdsocket", "containerd-socket", []string{"containerd-socket"}},
		{"images", "image", []string{"image-pulls-parallel", "image"}},
		{"abcdef", "abcdef1,abcxef,abcdeg", []string{"abcdef1", "abcxef", "abcdeg", "abcdefghij", "abcdeg"}},
		{"node", "", []string{"node"}},
	} {
		if got := strings.Join(Nearest(c.word, c.words), ","); got != c.want {
			t.Errorf("%q: %q, want %q", c.word, got, c.want)
		}
	}
}
