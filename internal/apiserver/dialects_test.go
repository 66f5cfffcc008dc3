package apiserver_test

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"sigs.k8s.io/yaml"

	"minik8s/internal/api"
	"minik8s/internal/api/dialect"
)

// The seeds' manifests go in as they are, over the API, and come out in Kubernetes' form.
func TestSeedManifestsGoIn(t *testing.T) {
	files, err := filepath.Glob("../../testdata/dialects/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatal("no manifests", err)
	}
	for _, f := range files {
		t.Run(filepath.Base(f), func(t *testing.T) {
			c := start(t)
			body, err := os.ReadFile(f)
			if err != nil {
				t.Fatal(err)
			}
			var doc map[string]any
			if err := yaml.Unmarshal(body, &doc); err != nil {
				t.Fatal(err)
			}
			version, name, err := dialect.Identify(doc)
			if err != nil {
				t.Fatal(err)
			}
			known := dialect.Known()
			i := slices.IndexFunc(known, func(k *api.Kind) bool { return k.Kind == name && k.APIVersion() == version })
			if i < 0 {
				t.Fatalf("no kind %s", name)
			}
			kind := known[i]
			path := "/api/v1/"
			if kind.Group != "" {
				path = "/apis/" + kind.Group + "/" + kind.Version + "/"
			}
			if kind.Namespaced {
				path += "namespaces/default/"
			}
			if code, answer := c.do(c.root(), "POST", path+kind.Plural, string(body)); code != 201 {
				t.Errorf("%d %s", code, answer)
			}
		})
	}
}
