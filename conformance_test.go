package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// checked is one of upstream's conformance tests, and what of ours shows the same.
type checked struct {
	Upstream string   `json:"upstream"`
	Tests    []string `json:"tests"`
	LeftOut  string   `json:"left-out"`
}

// Each of upstream's conformance tests that testdata/conformance lists is shown by tests that exist, or says why not. That the list
// has all of them is compared in testdata/oracle.
func TestConformanceIsCovered(t *testing.T) {
	files, err := filepath.Glob("testdata/conformance/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatal("no lists: ", err)
	}
	known := map[string]map[string]bool{} // the tests of a package
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		var list []checked
		if err := yaml.UnmarshalStrict(b, &list); err != nil {
			t.Fatal(f, ": ", err)
		}
		seen := map[string]bool{}
		for _, c := range list {
			if seen[c.Upstream] || (len(c.Tests) == 0) != (c.LeftOut != "") {
				t.Errorf("%s: %s: is listed twice, or has neither tests nor a reason, or both", f, c.Upstream)
			}
			seen[c.Upstream] = true
			for _, test := range c.Tests {
				where, name, _ := strings.Cut(test, " ")
				if where == "scenario" {
					if _, err := os.Stat(filepath.Join("testdata/scenarios", name+".txt")); err != nil {
						t.Errorf("%s: %s: %v", f, c.Upstream, err)
					}
					continue
				}
				if known[where] == nil {
					known[where] = testsOf(t, where)
				}
				if !known[where][name] {
					t.Errorf("%s: %s: package %s has no test %s", f, c.Upstream, where, name)
				}
			}
		}
	}
}

// testsOf are the names of a package's tests.
func testsOf(t *testing.T, dir string) map[string]bool {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]bool{}
	for _, f := range files {
		parsed, err := parser.ParseFile(token.NewFileSet(), f, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range parsed.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && fn.Recv == nil && strings.HasPrefix(fn.Name.Name, "Test") {
				out[fn.Name.Name] = true
			}
		}
	}
	return out
}
