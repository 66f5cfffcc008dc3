package containerd

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"minik8s/internal/kubelet/containerd/image"
	"minik8s/internal/kubelet/cri"
)

// layers are the directories and contents of busybox's layers.
func (b *bench) layers() []image.Layer {
	b.t.Helper()
	list, err := b.images.Layers(b.ns(b.ctx), "busybox")
	if err != nil || len(list) == 0 {
		b.t.Fatal(list, err)
	}
	return list
}

// cutPower empties the unpacked files, as a power failure does to files that were not synced.
func (b *bench) cutPower() {
	b.t.Helper()
	layers := b.layers()
	emptied := 0
	for _, y := range layers {
		err := filepath.WalkDir(y.Dir, func(path string, d fs.DirEntry, err error) error {
			if err != nil || !d.Type().IsRegular() {
				return err
			}
			emptied++
			return os.Truncate(path, 0)
		})
		if err != nil {
			b.t.Fatal(err)
		}
	}
	if emptied == 0 {
		b.t.Fatal("there was nothing to empty")
	}
}

// syncedLabel is that of package image.
const syncedLabel = "minik8s.io/settled"

// unsettle removes the label, as if a version that did not sync had unpacked the layers.
func (b *bench) unsettle() {
	b.t.Helper()
	layers := b.layers()
	sn := b.client.SnapshotService(b.containerd.Snapshotter)
	for _, y := range layers {
		info, err := sn.Stat(b.ns(b.ctx), y.ChainID)
		if err != nil {
			b.t.Fatal(err)
		}
		if info.Labels[syncedLabel] == "" {
			b.t.Errorf("%s was not known to be on the disk", y.ChainID)
		}
		delete(info.Labels, syncedLabel)
		if _, err := sn.Update(b.ns(b.ctx), info, "labels"); err != nil {
			b.t.Fatal(err)
		}
	}
}

// blobs are the files in which the layers' content is stored.
func (b *bench) blobs() []string {
	layers := b.layers()
	var out []string
	for _, y := range layers {
		out = append(out, filepath.Join(b.cfg.DataDir, "containerd", "io.containerd.content.v1.content", "blobs", "sha256", y.Blob.Digest.Encoded()))
	}
	return out
}

// attempt runs a container once and says how it ended.
func (b *bench) attempt(n int) (cri.Container, error) {
	cfg := b.containerConfig("p", "c", "sh", "-c", "exit 42")
	cfg.Attempt = n
	if _, err := b.EnsureSandbox(b.ctx, b.sandboxConfig("p")); err != nil {
		b.t.Fatal(err)
	}
	id, err := b.CreateContainer(b.ctx, cfg)
	if err != nil {
		return cri.Container{}, err
	}
	if err := b.StartContainer(b.ctx, id); err != nil {
		return cri.Container{}, err
	}
	return b.waitExit(id), nil
}

// An image whose files a power cut has taken is noticed and unpacked again.
func TestDamagedImage(t *testing.T) {
	works := func(b *bench, n int) {
		b.t.Helper()
		if c, err := b.attempt(n); err != nil || c.ExitCode != 42 {
			b.t.Errorf("%+v, %v", c, err)
		}
	}
	later := func(b *bench) {
		b.t.Helper()
		n := 0
		eventually(b.t, "a container that runs", func() error {
			n++
			c, err := b.attempt(n)
			if err == nil && c.ExitCode != 42 {
				err = fmt.Errorf("it ends with %d: %s", c.ExitCode, c.StartError)
			}
			return err
		})
	}
	b := newBench(t)
	for _, x := range []struct {
		name   string
		damage func()
		works  func(b *bench)
	}{
		{"of a version that did not wait", func() { b.unsettle(); b.cutPower(); b.restart() }, func(b *bench) { works(b, 100) }},
		{"by a disk that forgets", func() { b.cutPower(); b.restart() }, later},
		{"directories are gone", func() {
			layers := b.layers()
			for _, y := range layers {
				if err := os.RemoveAll(y.Dir); err != nil {
					t.Fatal(err)
				}
			}
			b.restart()
		}, func(b *bench) { works(b, 200) }},
		{"and imported again", func() {
			b.cutPower()
			if err := os.Remove(filepath.Join(b.containerd.Root, "imported.json")); err != nil {
				t.Fatal(err)
			}
			if _, err := b.ImportDir(b.ctx, archives); err != nil {
				t.Fatal(err)
			}
		}, func(b *bench) { works(b, 300) }},
		{"with the content it came from", func() {
			b.unsettle()
			b.cutPower()
			for _, f := range b.blobs() {
				if err := os.Truncate(f, 0); err != nil {
					t.Fatal(err)
				}
			}
			b.restart()
			if _, err := b.ImportDir(b.ctx, archives); err != nil { // as at each start: all are known
				t.Fatal(err)
			}
		}, later},
	} {
		t.Run(x.name, func(t *testing.T) {
			x.damage()
			x.works(b)
			if err := b.RemoveSandbox(b.ctx, "uid-p"); err != nil {
				t.Fatal(err)
			}
			if layers := b.layers(); layers == nil {
				t.Error("the image is gone")
			}
		})
	}
}

// The image of a container that fails for its own reasons is compared once, and kept.
func TestMistakesAreNoDamage(t *testing.T) {
	b := newBench(t)
	if _, err := b.EnsureSandbox(b.ctx, b.sandboxConfig("p")); err != nil {
		t.Fatal(err)
	}
	img, err := b.images.Get(b.ns(b.ctx), "busybox")
	if err != nil {
		t.Fatal(err)
	}
	for n := range 2 {
		cfg := b.containerConfig("p", "c", "no-such-command")
		cfg.Attempt = n
		id, err := b.CreateContainer(b.ctx, cfg)
		if err != nil {
			t.Fatal(err)
		}
		var failed *cri.StartError
		if err := b.StartContainer(b.ctx, id); !errors.As(err, &failed) || failed.ExitCode != 127 {
			t.Fatal(err)
		}
		if img.Compared().IsZero() {
			t.Error("it was not compared, or found damaged")
		}
	}
}
