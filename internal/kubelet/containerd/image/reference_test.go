package image

import (
	"errors"
	"strings"
	"testing"

	"minik8s/internal/kubelet/cri"
)

func TestReferences(t *testing.T) {
	for ref, want := range map[string]string{
		"busybox":                          "docker.io/library/busybox:latest",
		"busybox:1.36":                     "docker.io/library/busybox:1.36",
		"minik8s/hello":                    "docker.io/minik8s/hello:latest",
		"docker.io/library/busybox:latest": "docker.io/library/busybox:latest",
		"localhost:5000/a/b":               "localhost:5000/a/b:latest",
		"registry.example/a:b@sha256:" + strings.Repeat("0", 64): "registry.example/a@sha256:" + strings.Repeat("0", 64),
		"UPPER": "", "a b": "", "": "",
	} {
		got, err := normalize(ref)
		if got != want || (want == "") != errors.Is(err, cri.ErrInvalidImageName) {
			t.Errorf("%q: %q, %v; want %q", ref, got, err, want)
		}
	}
}
