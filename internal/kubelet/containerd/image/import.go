package image

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	ctrd "github.com/containerd/containerd"
	"github.com/containerd/containerd/archive/compression"
	"github.com/containerd/containerd/errdefs"
	"github.com/containerd/containerd/images"
	"github.com/containerd/containerd/leases"

	"minik8s/internal/disk"
	"minik8s/internal/kubelet/cri"
)

// ImportImages implements cri.Images.
func (s *Store) ImportImages(ctx context.Context, archive io.Reader) ([]cri.Image, error) {
	ctx = s.cfg.Containerd.Context(ctx)
	tar, err := compression.DecompressStream(archive)
	if err != nil {
		return nil, fmt.Errorf("containerd: import: %w", err)
	}
	defer tar.Close()
	// The lease protects imported content from the garbage collector until it is unpacked.
	ctx, release, err := s.client.WithLease(ctx, leases.WithRandomID(), leases.WithExpiration(time.Hour))
	if err != nil {
		return nil, fmt.Errorf("containerd: import: %w", err)
	}
	defer release(context.WithoutCancel(ctx))
	list, err := s.client.Import(ctx, tar, ctrd.WithImageRefTranslator(func(ref string) string {
		if name, err := normalize(ref); err == nil {
			return name
		}
		return ""
	}))
	if err != nil {
		return nil, fmt.Errorf("containerd: import: %w", err)
	}
	if len(list) == 0 {
		return nil, errors.New("containerd: import: the archive names no image for this machine; give it a tag before saving it")
	}
	var out []cri.Image
	for _, img := range list {
		if img, err = s.rename(ctx, img); err != nil {
			return nil, err
		}
		if err := s.unpackVerified(ctx, img); err != nil {
			return nil, err
		}
		d, err := s.describe(ctx, img.Target.Digest)
		if err != nil {
			return nil, err
		}
		if !slices.ContainsFunc(out, func(o cri.Image) bool { return o.ID == d.ID }) {
			out = append(out, *d)
		}
	}
	return out, s.sync()
}

// sync waits until the whole image store is on the disk, so that an image that is reported as imported or pulled
// still exists after a power failure.
func (s *Store) sync() error {
	if !s.cfg.Containerd.Embedded() {
		return nil
	}
	if err := disk.SyncAll(s.cfg.Containerd.Root); err != nil {
		return fmt.Errorf("containerd: the image store: %w", err)
	}
	return nil
}

// unpackVerified unpacks an image. If it is unpacked already, its files are compared with the archive's content:
// damage is a reason to import an image again.
func (s *Store) unpackVerified(ctx context.Context, img images.Image) error {
	l, err := s.read(ctx, &img)
	if err != nil {
		s.dropIfDamaged(ctx, &img, err)
		return fmt.Errorf("%w; if it was damaged it is removed now: import it again", err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	_, err = s.client.SnapshotService(s.snapshotter).Stat(ctx, l.ChainID)
	if errdefs.IsNotFound(err) {
		return s.unpack(ctx, img)
	}
	if err == nil {
		_, err = s.repairLayers(ctx, l, &img, true)
	}
	if err != nil {
		s.dropIfDamaged(ctx, &img, err)
		return fmt.Errorf("containerd: %s: %w; import it again", img.Name, err)
	}
	return nil
}

// rename gives an image its full name, if its archive was written with a short one.
func (s *Store) rename(ctx context.Context, img images.Image) (images.Image, error) {
	name, err := normalize(img.Name)
	if err != nil || name == img.Name {
		return img, err
	}
	short := img.Name
	img.Name = name
	store := s.client.ImageService()
	full, err := store.Create(ctx, img)
	if errdefs.IsAlreadyExists(err) {
		full, err = store.Update(ctx, img)
	}
	if err == nil {
		err = store.Delete(ctx, short)
	}
	if err != nil {
		return img, fmt.Errorf("containerd: import: %s: %w", name, err)
	}
	return full, nil
}

// unpack makes the snapshots of an image's layers.
func (s *Store) unpack(ctx context.Context, img images.Image) error {
	if err := ctrd.NewImage(s.client, img).Unpack(ctx, s.snapshotter, unpackOpts()...); err != nil {
		return fmt.Errorf("containerd: unpack %s: %w", img.Name, err)
	}
	return nil
}

// archiveStamp is the state of an archive when it was imported, to detect changes.
type archiveStamp struct {
	Size    int64
	ModTime time.Time
}

// ImportDir imports the archives (.tar, .tar.gz, .tgz, .tar.zst) in dir that are new or have changed since their
// import, and returns the names of their images. It is not an error if the directory does not exist. An archive that
// cannot be read is an error, after the others have been read.
func (s *Store) ImportDir(ctx context.Context, dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("containerd: %w", err)
	}
	s.archives.Store(&dir)
	stamps := s.readStamps()
	var names []string
	var errs []error
	for _, e := range entries {
		path := filepath.Join(dir, e.Name())
		if !isArchive(e.Name()) {
			continue
		}
		st, err := os.Stat(path)
		if err != nil || !st.Mode().IsRegular() {
			continue
		}
		stamp := archiveStamp{st.Size(), st.ModTime().UTC()}
		if stamps[path] == stamp {
			continue
		}
		list, err := s.importFile(ctx, path)
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", path, err))
			continue
		}
		for _, i := range list {
			names = append(names, i.Tags...)
		}
		stamps[path] = stamp
		if err := s.writeStamps(stamps); err != nil {
			errs = append(errs, fmt.Errorf("containerd: %w", err))
		}
	}
	return names, errors.Join(errs...)
}

// readStamps are the stamps of imported archives, by path; none if they cannot be read.
func (s *Store) readStamps() map[string]archiveStamp {
	stamps := map[string]archiveStamp{}
	if data, err := os.ReadFile(s.stampFile()); err == nil {
		if err := json.Unmarshal(data, &stamps); err != nil {
			return map[string]archiveStamp{}
		}
	}
	return stamps
}

func (s *Store) writeStamps(stamps map[string]archiveStamp) error {
	data, err := json.Marshal(stamps)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(s.stampFile()), 0o711); err != nil {
		return err
	}
	return disk.WriteFile(s.stampFile(), data, 0o600)
}

// stampFile is in the image store's directory, so that both are lost together.
func (s *Store) stampFile() string {
	return filepath.Join(s.cfg.Containerd.Root, "imported.json")
}

// reimportArchives imports all archives again, because one of their images was damaged.
func (s *Store) reimportArchives() {
	dir := s.archives.Load()
	if dir == nil {
		return
	}
	if err := os.Remove(s.stampFile()); err != nil {
		return // there are no archives
	}
	s.wg.Go(func() {
		if _, err := s.ImportDir(s.run, *dir); err != nil {
			s.cfg.Log.Warn("an archive could not be imported again", "err", err)
		}
	})
}

func (s *Store) importFile(ctx context.Context, path string) ([]cri.Image, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return s.ImportImages(ctx, f)
}

func isArchive(name string) bool {
	return slices.ContainsFunc([]string{".tar", ".tar.gz", ".tgz", ".tar.zst"}, func(s string) bool { return strings.HasSuffix(name, s) })
}
