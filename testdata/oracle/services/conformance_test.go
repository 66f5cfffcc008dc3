package services

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// testdata/conformance/sig-network.yaml lists upstream's conformance tests of sig-network: all of them, and no others.
func TestConformanceListIsComplete(t *testing.T) {
	dir, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "k8s.io/kubernetes").Output()
	if err != nil {
		t.Fatal(err)
	}
	read := func(path string, into any) {
		t.Helper()
		b, err := os.ReadFile(path)
		if err == nil {
			err = yaml.Unmarshal(b, into)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	var theirs []struct{ Codename string }
	var ours []struct{ Upstream string }
	read(filepath.Join(strings.TrimSpace(string(dir)), "test/conformance/testdata/conformance.yaml"), &theirs)
	read("../../conformance/sig-network.yaml", &ours)
	listed := map[string]bool{}
	for _, o := range ours {
		listed[o.Upstream] = true
	}
	for _, c := range theirs {
		if strings.HasPrefix(c.Codename, "[sig-network]") && !listed[c.Codename] {
			t.Errorf("%s is not listed", c.Codename)
		}
		delete(listed, c.Codename)
	}
	for name := range listed {
		t.Errorf("%s is no conformance test of upstream's", name)
	}
}
