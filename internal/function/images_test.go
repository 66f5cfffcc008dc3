package function

import (
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/v1/empty"

	"minik8s/internal/function/plan"
	"minik8s/internal/imageregistry"
)

// A master that begins to lead makes no image again that another has made of the same; of another base it does.
func TestImagesAreMadeOnce(t *testing.T) {
	log := slog.New(slog.DiscardHandler)
	archive := filepath.Join(t.TempDir(), "base.tar")
	if err := os.WriteFile(archive, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(archive)
	if err != nil {
		t.Fatal(err)
	}
	store := imageregistry.New(imageregistry.Config{Dir: t.TempDir(), Log: log})
	images := NewImages(nil, t.TempDir(), archive, store, Elsewhere{}, log)
	images.raw, images.written, images.platform = empty.Image, info.ModTime(), "here"
	reg, _ := anAPI(t)
	fn := triggered("f")
	fn.UID, fn.Generation, fn.Status.ObservedGeneration, fn.Status.Image = "u", 3, 3, "registry.minik8s.io:5000/functions/default/f@sha256:0"
	repository := plan.Repository("default", "f")
	for _, x := range []struct {
		platform string
		observed int64
		made     int
	}{{"here", 3, 0}, {"here", 2, 1}, {"elsewhere", 3, 1}, {"", 3, 1}} {
		f := controlling(t, reg)
		f.images = images
		now := fn.DeepCopy()
		now.Status.Platform, now.Status.ObservedGeneration = x.platform, x.observed
		ref, err := f.ref(t.Context(), now)
		if err != nil {
			t.Fatal(err)
		}
		made, err := store.Images(repository)
		if err != nil || len(made) != x.made || (ref == fn.Status.Image) != (x.made == 0) || !strings.Contains(ref, repository) {
			t.Errorf("%+v: %s, %v, %v", x, ref, made, err)
		}
	}
}
