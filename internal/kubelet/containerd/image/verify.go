package image

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	ctrd "github.com/containerd/containerd"
	"github.com/containerd/containerd/archive/compression"
	"github.com/containerd/containerd/content"
	"github.com/containerd/containerd/diff"
	"github.com/containerd/containerd/errdefs"
	"github.com/containerd/containerd/images"
	"github.com/containerd/containerd/mount"
	"github.com/containerd/containerd/snapshots"
	"github.com/containerd/platforms"
	"github.com/opencontainers/image-spec/identity"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

// syncedLabel marks snapshots of layers whose files are known to be on the disk: they were synced before the snapshot
// was committed, or compared later.
const syncedLabel = "minik8s.io/settled"

// errDamaged means that the stored content of an image is damaged. Only its registry or archive can replace it.
var errDamaged = errors.New("its stored content is damaged")

// unpackOpts have a layer's files synced before its snapshot is committed. So after a power failure a layer is
// complete or does not exist.
func unpackOpts() []ctrd.UnpackOpt {
	return []ctrd.UnpackOpt{ctrd.WithUnpackApplyOpts(diff.WithSyncFs(true)), func(_ context.Context, c *ctrd.UnpackConfig) error {
		c.SnapshotOpts = append(c.SnapshotOpts, snapshots.WithLabels(map[string]string{syncedLabel: "1"}))
		return nil
	}}
}

// Layer is one layer of an image: its stored content, and where it is unpacked.
type Layer struct {
	Blob    ocispec.Descriptor
	ChainID string // of its snapshot
	Dir     string
}

// Layers are the unpacked layers of an image, the lowest first. ctx is from Containerd.Context.
func (s *Store) Layers(ctx context.Context, ref string) ([]Layer, error) {
	img, err := s.find(ctx, ref)
	if err != nil || img == nil {
		return nil, err
	}
	l, err := s.read(ctx, img)
	if err != nil {
		return nil, err
	}
	return s.layersOf(ctx, l, img)
}

// layersOf are an image's unpacked layers, the lowest first; none where layers are not separate, as with the native
// snapshotter, which copies each layer into the next.
func (s *Store) layersOf(ctx context.Context, l *Image, img *images.Image) ([]Layer, error) {
	if s.snapshotter != "overlayfs" {
		return nil, nil
	}
	manifest, err := images.Manifest(ctx, s.client.ContentStore(), img.Target, platforms.Default())
	if err != nil {
		return nil, err
	}
	var blobs []ocispec.Descriptor
	for _, d := range manifest.Layers {
		if images.IsLayerType(d.MediaType) {
			blobs = append(blobs, d)
		}
	}
	dirs, err := s.layerDirs(ctx, l)
	var missing *fs.PathError
	if errors.As(err, &missing) && errors.Is(err, fs.ErrNotExist) && s.cfg.Containerd.Embedded() && strings.HasPrefix(missing.Path, s.cfg.Containerd.Root+"/") {
		// The directory of the topmost layer is missing, which makes the snapshotter fail.
		if err := os.MkdirAll(missing.Path, 0o755); err != nil {
			return nil, err
		}
		dirs, err = s.layerDirs(ctx, l)
	}
	if err != nil {
		return nil, err
	}
	slices.Reverse(dirs)
	if len(blobs) != len(dirs) || len(l.diffIDs) != len(dirs) {
		return nil, fmt.Errorf("%d layers of %d differences are unpacked in %d directories", len(blobs), len(l.diffIDs), len(dirs))
	}
	out := make([]Layer, len(dirs))
	for i := range dirs {
		out[i] = Layer{Blob: blobs[i], ChainID: identity.ChainID(l.diffIDs[:i+1]).String(), Dir: dirs[i]}
	}
	return out, nil
}

// repairLayers compares the unpacked layers of an image with their stored content, and unpacks those that differ
// again; with all false, only layers that are not known to be on the disk. A layer is repaired in place, because
// other layers and containers are based on it. The error is errDamaged if the stored content is damaged, too;
// repaired says that something differed.
func (s *Store) repairLayers(ctx context.Context, l *Image, img *images.Image, all bool) (repaired bool, err error) {
	sn := s.client.SnapshotService(s.snapshotter)
	if !all {
		info, err := sn.Stat(ctx, l.ChainID)
		if err != nil || info.Labels[syncedLabel] != "" || !s.cfg.Containerd.Embedded() {
			return false, err // the layers below were synced before it; and an external containerd's files are not checked
		}
	}
	layers, err := s.layersOf(ctx, l, img)
	if err != nil {
		return false, err
	}
	for i, y := range layers {
		info, err := sn.Stat(ctx, y.ChainID)
		if err != nil {
			return repaired, err
		}
		if !all && info.Labels[syncedLabel] != "" {
			continue
		}
		wrong, err := s.compareLayer(ctx, y)
		if err != nil {
			return repaired, err
		}
		if wrong != "" {
			s.cfg.Log.Warn("an image's files are damaged; its layer is unpacked again", "image", img.Name, "file", wrong)
			if err := s.unpackInPlace(ctx, layers[:i+1]); err != nil {
				return repaired, err
			}
			repaired = true
		}
		if info.Labels[syncedLabel] == "" {
			if info.Labels == nil {
				info.Labels = map[string]string{}
			}
			info.Labels[syncedLabel] = "1"
			if _, err := sn.Update(ctx, info, "labels."+syncedLabel); err != nil {
				return repaired, err
			}
		}
	}
	return repaired, nil
}

// unpackInPlace applies the last of the layers to the directory it has.
func (s *Store) unpackInPlace(ctx context.Context, layers []Layer) error {
	top := layers[len(layers)-1]
	if err := os.MkdirAll(top.Dir, 0o755); err != nil {
		return err
	}
	m := mount.Mount{Type: "overlay", Source: "overlay", Options: []string{"upperdir=" + top.Dir}}
	var below []string
	for _, y := range slices.Backward(layers[:len(layers)-1]) {
		below = append(below, y.Dir)
	}
	if len(below) > 0 {
		m.Options = append(m.Options, "lowerdir="+strings.Join(below, ":"))
	}
	if _, err := s.client.DiffService().Apply(ctx, top.Blob, []mount.Mount{m}, diff.WithSyncFs(true)); err != nil {
		return fmt.Errorf("unpacking: %w", err)
	}
	return nil
}

// compareLayer returns the name of a file that differs from the layer's stored content; empty if none does. The
// content's digest is checked at the same time.
func (s *Store) compareLayer(ctx context.Context, y Layer) (wrong string, err error) {
	if err := s.verifyBlob(ctx, y.Blob); err != nil {
		return "", err
	}
	ra, err := s.client.ContentStore().ReaderAt(ctx, y.Blob)
	if err != nil {
		return "", err
	}
	defer ra.Close()
	plain, err := compression.DecompressStream(content.NewReader(ra))
	if err != nil {
		return "", err
	}
	defer plain.Close()
	root, err := os.OpenRoot(y.Dir)
	if errors.Is(err, fs.ErrNotExist) {
		return y.Dir, nil
	}
	if err != nil {
		return "", err
	}
	defer root.Close()
	return compareTree(ctx, root, tar.NewReader(plain))
}

// compareTree compares a directory with an archive. Of a file that is in the archive twice, the last one counts.
func compareTree(ctx context.Context, root *os.Root, archive *tar.Reader) (wrong string, err error) {
	damaged := map[string]bool{}
	for {
		h, err := archive.Next()
		if err == io.EOF {
			break
		}
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return "", err
		}
		name := filepath.Clean(strings.TrimPrefix(h.Name, "/"))
		if name == "." || strings.HasPrefix(filepath.Base(name), ".wh..wh.") {
			continue
		}
		ok := true
		if removed, is := strings.CutPrefix(filepath.Base(name), ".wh."); is { // a whiteout, a character device when unpacked
			name = filepath.Join(filepath.Dir(name), removed)
			_, err = root.Lstat(name)
			ok = err == nil
		} else if ok, err = sameEntry(root, name, h, archive); err != nil {
			return "", err
		}
		if ok {
			delete(damaged, name)
		} else {
			damaged[name] = true
		}
	}
	for name := range damaged {
		return name, nil
	}
	return "", nil
}

// sameEntry reports whether name is as in the archive. A file that cannot be read counts as different.
func sameEntry(root *os.Root, name string, h *tar.Header, body io.Reader) (bool, error) {
	st, err := root.Lstat(name)
	if err != nil {
		// A path through a symbolic link out of the layer cannot be followed here; that is not damage.
		return !errors.Is(err, fs.ErrNotExist), nil
	}
	switch h.Typeflag {
	case tar.TypeDir:
		return st.IsDir(), nil
	case tar.TypeSymlink:
		to, err := root.Readlink(name)
		return err == nil && to == h.Linkname, nil
	case tar.TypeReg:
		if !st.Mode().IsRegular() || st.Size() != h.Size {
			return false, nil
		}
		f, err := root.Open(name)
		if err != nil {
			return false, nil
		}
		defer f.Close()
		return sameBytes(f, body)
	}
	return true, nil
}

// sameBytes compares a file with its content in an archive; the error is only that of reading the archive.
func sameBytes(file, archive io.Reader) (bool, error) {
	have, want := make([]byte, 64<<10), make([]byte, 64<<10)
	for {
		n, err := io.ReadFull(archive, want)
		if err != nil && err != io.EOF && err != io.ErrUnexpectedEOF {
			return false, err
		}
		if m, _ := io.ReadFull(file, have[:n]); m != n || !bytes.Equal(have[:n], want[:n]) { //nolint:errcheck // a short file differs
			return false, nil
		}
		if err != nil {
			return true, nil
		}
	}
}

// verifyBlob reads the content stored under a digest. The error is errDamaged if it has another digest, or is
// missing.
func (s *Store) verifyBlob(ctx context.Context, d ocispec.Descriptor) error {
	ra, err := s.client.ContentStore().ReaderAt(ctx, d)
	if errdefs.IsNotFound(err) {
		return fmt.Errorf("%w: %s is missing", errDamaged, d.Digest)
	}
	if err != nil {
		return err
	}
	defer ra.Close()
	v := d.Digest.Verifier()
	if _, err := io.Copy(v, content.NewReader(ra)); err != nil {
		return err
	}
	if !v.Verified() {
		return fmt.Errorf("%w: %s is something else", errDamaged, d.Digest)
	}
	return nil
}

// verifyContent checks everything that an image refers to for this platform. The error is errDamaged if something is
// damaged.
func (s *Store) verifyContent(ctx context.Context, img *images.Image) error {
	cs := s.client.ContentStore()
	check := images.HandlerFunc(func(ctx context.Context, d ocispec.Descriptor) ([]ocispec.Descriptor, error) {
		if err := s.verifyBlob(ctx, d); err != nil {
			return nil, err
		}
		return images.Children(ctx, cs, d)
	})
	return images.Walk(ctx, images.LimitManifests(images.FilterPlatforms(check, platforms.Default()), platforms.Default(), 1), img.Target)
}
