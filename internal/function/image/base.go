package image

import (
	"archive/tar"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
)

// OpenBase reads the image in an OCI archive (a tar file with an index.json), and keeps its files in dir, which it replaces. Of an
// archive with several images it is the one for this machine.
func OpenBase(archive, dir string) (v1.Image, error) {
	if err := unpack(archive, dir); err != nil {
		return nil, fmt.Errorf("the base image %s: %w", archive, err)
	}
	index, err := layout.ImageIndexFromPath(dir)
	if err != nil {
		return nil, fmt.Errorf("the base image %s: expected an OCI archive: %w", archive, err)
	}
	return choose(index, archive)
}

// choose is the image of an index for this machine.
func choose(index v1.ImageIndex, archive string) (v1.Image, error) {
	m, err := index.IndexManifest()
	if err != nil {
		return nil, fmt.Errorf("the base image %s: %w", archive, err)
	}
	for _, d := range m.Manifests {
		if d.Platform != nil && d.Platform.Architecture != "" && d.Platform.Architecture != runtime.GOARCH {
			continue
		}
		if d.MediaType.IsIndex() {
			nested, err := index.ImageIndex(d.Digest)
			if err != nil {
				return nil, fmt.Errorf("the base image %s: %w", archive, err)
			}
			return choose(nested, archive)
		}
		return index.Image(d.Digest)
	}
	return nil, fmt.Errorf("the base image %s: it has no image for %s", archive, runtime.GOARCH)
}

// unpack writes the files of a tar archive to dir. Only plain files below dir are written.
func unpack(archive, dir string) (err error) {
	f, err := os.Open(archive)
	if err != nil {
		return err
	}
	defer f.Close() //nolint:errcheck // it was only read
	if err := os.RemoveAll(dir); err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close() //nolint:errcheck // nothing is left to write
	for r := tar.NewReader(f); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if h.Typeflag != tar.TypeReg {
			continue
		}
		name := strings.TrimPrefix(filepath.Clean("/"+h.Name), "/")
		if err := root.MkdirAll(filepath.Dir(name), 0o700); err != nil {
			return err
		}
		out, err := root.OpenFile(name, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
		if err != nil {
			return err
		}
		if _, err := io.Copy(out, r); err != nil {
			out.Close() //nolint:errcheck // the first error counts
			return err
		}
		if err := out.Close(); err != nil {
			return err
		}
	}
}
