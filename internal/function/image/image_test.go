package image_test

import (
	"archive/tar"
	"bytes"
	"context"
	"io"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"minik8s/internal/api/minik8s"
	"minik8s/internal/function/image"
	"minik8s/internal/imageregistry"
)

// baseArchive writes an OCI archive with one layer of so many bytes.
func baseArchive(t *testing.T, size int) string {
	t.Helper()
	layer := static.NewLayer(bytes.Repeat([]byte("x"), size), types.OCIUncompressedLayer)
	img, err := mutate.Append(mutate.MediaType(empty.Image, types.OCIManifestSchema1), mutate.Addendum{Layer: layer, MediaType: types.OCIUncompressedLayer})
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	p, err := layout.Write(dir, empty.Index)
	if err != nil {
		t.Fatal(err)
	}
	if err := p.AppendImage(img); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "base.tar")
	out, err := os.Create(file)
	if err != nil {
		t.Fatal(err)
	}
	w := tar.NewWriter(out)
	if err := w.AddFS(os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := out.Close(); err != nil {
		t.Fatal(err)
	}
	return file
}

// A function's image is built on the base, pushed, asked for by its digest, made anew where it is missing, and its space comes
// back when it is removed.
func TestImages(t *testing.T) {
	archive := baseArchive(t, 1<<20)
	dir := t.TempDir()
	spec := &minik8s.FunctionSpec{Source: "def main(p): return p", PreRun: "true", Files: []minik8s.FunctionFile{{Path: "lib/a.py", Content: "a = 1"}, {Path: "b.bin", Data: []byte{0, 1}}}}
	type master struct {
		*imageregistry.Registry
		push func(s *minik8s.FunctionSpec) string
	}
	var asked []string
	newMaster := func(dir string, missing func(repository, digest string)) master {
		r := imageregistry.New(imageregistry.Config{Dir: dir, Missing: func(_ context.Context, repository, digest string) {
			asked = append(asked, repository+"@"+digest)
			if missing != nil {
				missing(repository, digest)
			}
		}})
		to := image.Registry{Host: "registry.test:5000", Transport: r}
		var base v1.Image
		return master{r, func(s *minik8s.FunctionSpec) string {
			if base == nil {
				raw, err := image.OpenBase(archive, filepath.Join(t.TempDir(), "base"))
				if err != nil {
					t.Fatal(err)
				}
				if base, err = to.PushBase(t.Context(), raw); err != nil {
					t.Fatal(err)
				}
			}
			img, err := image.Build(base, s)
			if err != nil {
				t.Fatal(err)
			}
			ref, err := to.Push(t.Context(), "functions/default/hello", img)
			if err != nil {
				t.Fatal(err)
			}
			return ref
		}}
	}
	first := newMaster(dir, nil)
	ref := first.push(spec)
	if again := first.push(spec); again != ref {
		t.Errorf("the same function gave %s and %s", ref, again)
	}
	changed := *spec
	changed.Source = "def main(p): return 1"
	one := size(t, dir)
	other := first.push(&changed)
	if other == ref {
		t.Error("another function gave the same image")
	}
	// An older version's image goes, and what only it has, with nothing of the others.
	_, digest, _ := strings.Cut(ref, "@")
	_, newer, _ := strings.Cut(other, "@")
	const repository = "functions/default/hello"
	if all, err := first.Images(repository); err != nil || len(all) != 2 {
		t.Errorf("images %v, %v", all, err)
	}
	if err := first.Sweep(t.Context(), nil, []imageregistry.Image{{Repository: repository, Digest: digest}}); err != nil {
		t.Fatal(err)
	}
	if all, err := first.Images(repository); err != nil || len(all) != 1 || all[0] != newer || first.Has(repository, digest) {
		t.Errorf("images after a sweep: %v, %v", all, err)
	}
	if now := size(t, dir); now > one {
		t.Errorf("%d bytes with one image, %d after a second one has taken its place", one, now)
	}
	if again := first.push(spec); again != ref {
		t.Errorf("after a sweep %s, before %s", again, ref)
	}

	// Over HTTP, from a master that has never made it.
	var second master
	second = newMaster(t.TempDir(), func(string, string) { second.push(spec) })
	srv := httptest.NewServer(second)
	defer srv.Close()
	at, err := name.NewDigest(strings.Replace(ref, "registry.test:5000", strings.TrimPrefix(srv.URL, "http://"), 1))
	if err != nil {
		t.Fatal(err)
	}
	asked = nil
	got, err := remote.Image(at)
	if err != nil {
		t.Fatal(err)
	}
	if len(asked) != 1 {
		t.Errorf("asked for what is missing: %v", asked)
	}
	layers, err := got.Layers()
	if err != nil || len(layers) != 2 {
		t.Fatalf("%d layers, %v", len(layers), err)
	}
	r, err := layers[1].Uncompressed()
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{}
	for tr := tar.NewReader(r); ; {
		h, err := tr.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		data, err := io.ReadAll(tr)
		if err != nil {
			t.Fatal(err)
		}
		files[h.Name] = string(data)
	}
	if files["function/main.py"] != spec.Source || files["function/lib/a.py"] != "a = 1" || files["function/b.bin"] != "\x00\x01" ||
		files["function/.prerun.sh"] != "true" || !strings.Contains(files["minik8s/_minik8s_serve.py"], "X-Minik8s-Outcome") {
		t.Errorf("files: %q", files)
	}
	cfg, err := got.ConfigFile()
	if err != nil || cfg.Config.WorkingDir != "/function" || len(cfg.Config.Entrypoint) == 0 {
		t.Errorf("config %+v, %v", cfg.Config, err)
	}

	before := size(t, dir)
	names, err := first.Repositories("functions")
	if err != nil || len(names) != 1 || names[0] != "functions/default/hello" {
		t.Fatalf("repositories %v, %v", names, err)
	}
	if err := first.Sweep(t.Context(), names, nil); err != nil {
		t.Fatal(err)
	}
	if first.Has(repository, digest) {
		t.Error("it is still there")
	}
	if after := size(t, dir); after >= before || after < 1<<20 {
		t.Errorf("%d bytes before, %d after: the function's files go, the base stays", before, after)
	}
	if again := first.push(spec); again != ref {
		t.Errorf("after a sweep %s, before %s", again, ref)
	}
}

func size(t *testing.T, dir string) (n int64) {
	t.Helper()
	err := filepath.Walk(dir, func(_ string, info os.FileInfo, err error) error {
		if err == nil && info.Mode().IsRegular() {
			n += info.Size()
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func TestBadBase(t *testing.T) {
	file := filepath.Join(t.TempDir(), "x.tar")
	if err := os.WriteFile(file, []byte("no tar"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, archive := range []string{file, filepath.Join(t.TempDir(), "none.tar")} {
		if _, err := image.OpenBase(archive, filepath.Join(t.TempDir(), "out")); err == nil || !strings.Contains(err.Error(), archive) {
			t.Errorf("%s: %v", archive, err)
		}
	}
}
