package containerd

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"minik8s/internal/kubelet/cri"
)

const archives = "../../../build/images"

// registry serves one image, taken from an archive, as repository/tag; with a password if there is one.
type registry struct {
	blobs    map[string][]byte
	manifest string // its digest
	password string
	requests atomic.Int32
	gate     chan struct{} // blobs wait for it
}

func newRegistry(t *testing.T, archive string) *registry {
	t.Helper()
	f, err := os.Open(filepath.Join(archives, archive))
	if err != nil {
		t.Skip("the test images are not built; run deploy/images/build.sh")
	}
	defer f.Close()
	g := &registry{blobs: map[string][]byte{}, gate: make(chan struct{})}
	for tr := tar.NewReader(f); ; {
		h, err := tr.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		data, err := io.ReadAll(tr)
		if err != nil {
			t.Fatal(err)
		}
		if d, ok := strings.CutPrefix(h.Name, "blobs/sha256/"); ok {
			g.blobs["sha256:"+d] = data
		}
		if h.Name == "index.json" {
			var index struct{ Manifests []struct{ Digest string } }
			if err := json.Unmarshal(data, &index); err != nil {
				t.Fatal(err)
			}
			g.manifest = index.Manifests[0].Digest
		}
	}
	return g
}

func (g *registry) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if g.password != "" {
		if user, pass, _ := r.BasicAuth(); user != "me" || pass != g.password {
			w.Header().Set("WWW-Authenticate", `Basic realm="test"`)
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
	}
	rest, ok := strings.CutPrefix(r.URL.Path, "/v2/team/app/")
	if !ok {
		http.NotFound(w, r)
		return
	}
	kind, name, _ := strings.Cut(rest, "/")
	switch kind {
	case "manifests":
		if name == "v1" {
			name = g.manifest
		}
		w.Header().Set("Content-Type", "application/vnd.oci.image.manifest.v1+json")
	case "blobs":
		if r.Method == http.MethodGet {
			g.requests.Add(1)
			select {
			case <-g.gate:
			case <-r.Context().Done():
				return
			}
		}
	}
	data, ok := g.blobs[name]
	if !ok {
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Docker-Content-Digest", name)
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(data))
}

func TestPull(t *testing.T) {
	b := newBench(t)
	if err := b.RemoveImage(b.ctx, "minik8s/hello"); err != nil {
		t.Fatal(err) // a present image is not fetched
	}
	g := newRegistry(t, "hello.tar")
	srv := httptest.NewServer(g)
	defer srv.Close()
	host := srv.Listener.Addr().String()
	ref := host + "/team/app:v1"

	// Pulls of the same image at the same time are one pull; its progress is reported.
	progress := make(chan cri.Progress, 100)
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			img, err := b.PullImage(b.ctx, ref, nil, func(p cri.Progress) { progress <- p })
			if err != nil || len(img.Tags) == 0 {
				t.Errorf("%+v, %v", img, err)
			}
		})
	}
	for known := false; !known; {
		select {
		case p := <-progress:
			known = p.Ref == ref && p.Total > 0 && p.Done < p.Total
		case <-time.After(20 * time.Second):
			t.Error("no progress is told")
			known = true
		}
	}
	close(g.gate)
	wg.Wait()
	if n := g.requests.Load(); n > 2 {
		t.Errorf("%d blobs were fetched, want the config and the layer", n)
	}
	cfg := b.containerConfig("web", "c", "/hello", "-h")
	cfg.Image = host + "/team/app@" + g.manifest
	if _, err := b.EnsureSandbox(b.ctx, b.sandboxConfig("web")); err != nil {
		t.Fatal(err)
	}
	b.waitExit(b.start(cfg))

	if _, err := b.PullImage(b.ctx, host+"/team/app:v2", nil, nil); !errors.Is(err, cri.ErrImageNotFound) {
		t.Errorf("a missing tag: %v; want ErrImageNotFound", err)
	}
	if _, err := b.PullImage(b.ctx, host+"/team/other:v1", nil, nil); !errors.Is(err, cri.ErrImageNotFound) {
		t.Errorf("a missing repository: %v; want ErrImageNotFound", err)
	}
	if _, err := b.PullImage(b.ctx, "Not A Name", nil, nil); !errors.Is(err, cri.ErrInvalidImageName) {
		t.Errorf("nonsense: %v; want ErrInvalidImageName", err)
	}
	g.password = "secret"
	if _, err := b.PullImage(b.ctx, ref, nil, nil); !errors.Is(err, cri.ErrImageUnauthorized) {
		t.Errorf("without a login: %v; want ErrImageUnauthorized", err)
	}
	if _, err := b.PullImage(b.ctx, ref, &cri.Auth{Username: "me", Password: "wrong"}, nil); !errors.Is(err, cri.ErrImageUnauthorized) {
		t.Errorf("with a wrong login: %v; want ErrImageUnauthorized", err)
	}
	if _, err := b.PullImage(b.ctx, ref, &cri.Auth{Username: "me", Password: "secret"}, nil); err != nil {
		t.Errorf("with the login: %v", err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	nobody := l.Addr().String()
	l.Close()
	if _, err := b.PullImage(b.ctx, nobody+"/team/app:v1", nil, nil); !errors.Is(err, cri.ErrRegistryUnavailable) {
		t.Errorf("nobody there: %v; want ErrRegistryUnavailable", err)
	}
	ctx, cancel := context.WithCancel(b.ctx)
	cancel()
	if _, err := b.PullImage(ctx, ref, nil, nil); err == nil {
		t.Error("a pull that was called off succeeded")
	}
}

func TestImport(t *testing.T) {
	b := newBench(t)
	data, err := os.ReadFile(filepath.Join(archives, "busybox.tar"))
	if err != nil {
		t.Fatal(err)
	}
	before, err := b.ImageStatus(b.ctx, "busybox")
	if err != nil {
		t.Fatal(err)
	}
	if err := b.RemoveImage(b.ctx, before.ID); err != nil {
		t.Fatal(err)
	}
	var zipped bytes.Buffer
	z := gzip.NewWriter(&zipped)
	if _, err := z.Write(data); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	list, err := b.ImportImages(b.ctx, &zipped)
	if err != nil || len(list) != 1 || list[0].ID != before.ID || list[0].Tags[0] != "docker.io/library/busybox:latest" {
		t.Errorf("a zipped archive: %+v, %v", list, err)
	}
	if _, err := b.ImportImages(b.ctx, strings.NewReader("this is no archive")); err == nil {
		t.Error("nonsense was imported")
	}
	// A directory is read once, until a file of it changes.
	dir := t.TempDir()
	file := filepath.Join(dir, "busybox.tar")
	if err := os.WriteFile(file, data, 0o644); err != nil {
		t.Fatal(err)
	}
	for i, want := range []int{1, 0, 1} {
		if i == 2 {
			if err := os.Chtimes(file, time.Time{}, time.Unix(1, 0)); err != nil {
				t.Fatal(err)
			}
		}
		names, err := b.ImportDir(b.ctx, dir)
		if err != nil || len(names) != want {
			t.Errorf("time %d: %v, %v; want %d", i, names, err, want)
		}
		b.restart()
	}
	all, err := b.ListImages(b.ctx)
	if err != nil || len(all) != 2 {
		t.Errorf("images: %+v, %v", all, err)
	}
}

// An image that was recorded, but not unpacked, when an earlier run was killed is unpacked when it is
// needed; and what it had begun to unpack before it knew of any snapshot is in nobody's way.
func TestUnpacksWhatWasInterrupted(t *testing.T) {
	b := newBench(t)
	img, err := b.images.Get(b.ns(b.ctx), "busybox")
	if err != nil {
		t.Fatal(err)
	}
	sn := b.client.SnapshotService(b.containerd.Snapshotter)
	if err := sn.Remove(b.ns(b.ctx), img.ChainID); err != nil {
		t.Fatal(err)
	}
	b.restart()
	if _, err := b.EnsureSandbox(b.ctx, b.sandboxConfig("late")); err != nil {
		t.Fatal(err)
	}
	b.waitExit(b.start(b.containerConfig("late", "box", "true")))
	if err := b.removePod(b.ctx, "uid-late"); err != nil {
		t.Fatal(err)
	}

	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	b.Runtime = nil
	root := filepath.Join(b.cfg.DataDir, "containerd")
	for _, gone := range []string{"io.containerd.metadata.v1.bolt", "io.containerd.snapshotter.v1.overlayfs"} {
		if err := os.RemoveAll(filepath.Join(root, gone)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.MkdirAll(filepath.Join(root, "io.containerd.snapshotter.v1.overlayfs", "snapshots", "1", "fs"), 0o700); err != nil {
		t.Fatal(err)
	}
	b.open()
	f, err := os.Open(filepath.Join(archives, "busybox.tar"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := b.ImportImages(b.ctx, f); err != nil {
		t.Errorf("unpacking beside what an interrupted run has left: %v", err)
	}
}
