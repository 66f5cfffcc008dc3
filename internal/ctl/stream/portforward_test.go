package stream

import (
	"testing"

	"minik8s/internal/ctl/exit"
)

func TestPorts(t *testing.T) {
	for arg, want := range map[string]PortPair{"80": {80, 80}, "8080:80": {8080, 80}, ":80": {0, 80}, "0:80": {0, 80}} {
		if got, err := ParsePortPair(arg); err != nil || got != want {
			t.Errorf("%s: %v, %v", arg, got, err)
		}
	}
	for _, arg := range []string{"", "x", "80:", "0", "70000", "1:2:3"} {
		if _, err := ParsePortPair(arg); exit.CodeOf(err) != exit.Usage {
			t.Errorf("%q: %v", arg, err)
		}
	}
}
