package containerd

import (
	"bytes"
	"embed"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/klauspost/compress/zstd"
)

// The products of deploy/runtime/build.sh. The pattern matches also when they are not built.
//
//go:embed bin
var embedded embed.FS

// binaries are where the programs containers need are found.
type binaries struct {
	runc, shim, pause string
}

// unpackBinaries writes the embedded programs to dir, unless those of the same build are there. Each
// takes its place by a rename, so a program that is running is not disturbed, and the stamp is last.
func unpackBinaries(dir string) (binaries, error) {
	b := binaries{
		runc:  filepath.Join(dir, "runc"),
		shim:  filepath.Join(dir, "containerd-shim-runc-v2"),
		pause: filepath.Join(dir, "pause"),
	}
	stamp, err := embedded.ReadFile("bin/stamp")
	if errors.Is(err, fs.ErrNotExist) {
		return b, errors.New("containerd: this binary was built without runc and the shim; run \"make build\", or use a running containerd with --containerd=SOCKET")
	}
	if err != nil {
		return b, fmt.Errorf("containerd: %w", err)
	}
	stampFile := filepath.Join(dir, "stamp")
	if have, err := os.ReadFile(stampFile); err == nil && bytes.Equal(have, stamp) {
		if _, err := os.Stat(b.runc); err == nil {
			return b, nil
		}
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return b, fmt.Errorf("containerd: %w", err)
	}
	for _, path := range []string{b.runc, b.shim, b.pause} {
		if err := unpack("bin/"+filepath.Base(path)+".zst", path); err != nil {
			return b, fmt.Errorf("containerd: unpacking %s: %w", filepath.Base(path), err)
		}
	}
	return b, writeFile(stampFile, stamp, 0o644)
}

func unpack(name, path string) error {
	src, err := embedded.Open(name)
	if err != nil {
		return err
	}
	defer src.Close()
	z, err := zstd.NewReader(src, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true))
	if err != nil {
		return err
	}
	defer z.Close()
	dst, err := os.CreateTemp(filepath.Dir(path), ".unpack-*")
	if err != nil {
		return err
	}
	defer os.Remove(dst.Name())
	defer dst.Close()
	if _, err := io.Copy(dst, z); err != nil {
		return err
	}
	if err := errors.Join(dst.Chmod(0o755), dst.Sync(), dst.Close()); err != nil {
		return err
	}
	return os.Rename(dst.Name(), path)
}

// writeFile gives path its new content at one moment, as seen by whoever reads it or by the next start.
func writeFile(path string, data []byte, mode os.FileMode) error {
	tmp, err := os.CreateTemp(filepath.Dir(path), ".new-*")
	if err != nil {
		return err
	}
	defer os.Remove(tmp.Name())
	_, err = tmp.Write(data)
	if err := errors.Join(err, tmp.Chmod(mode), tmp.Close()); err != nil {
		return err
	}
	return os.Rename(tmp.Name(), path)
}
