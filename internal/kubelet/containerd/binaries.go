package containerd

import (
	"embed"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"

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

// unpackBinaries writes the embedded programs to dir, unless those of the same build are there and of the
// right size. Each takes its place by a rename, so a program that is running is not disturbed, and the
// stamp is last. Nothing is synced: a power cut leaves a wrong size, which the next start sees.
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
	paths := []string{b.runc, b.shim, b.pause}
	stampFile := filepath.Join(dir, "stamp")
	if have, err := os.ReadFile(stampFile); err == nil && string(have) == describeBuild(stamp, paths) {
		return b, nil
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return b, fmt.Errorf("containerd: %w", err)
	}
	errs := make([]error, len(paths))
	var wg sync.WaitGroup
	for i, path := range paths {
		wg.Go(func() {
			if err := unpack("bin/"+filepath.Base(path)+".zst", path); err != nil {
				errs[i] = fmt.Errorf("containerd: unpacking %s: %w", filepath.Base(path), err)
			}
		})
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		return b, err
	}
	return b, writeFile(stampFile, []byte(describeBuild(stamp, paths)), 0o644)
}

// describeBuild is what the stamp says of a build: which it is, and how large its files are.
func describeBuild(stamp []byte, paths []string) string {
	text := strings.TrimSpace(string(stamp))
	for _, p := range paths {
		size := int64(-1)
		if st, err := os.Stat(p); err == nil {
			size = st.Size()
		}
		text += fmt.Sprintf(" %d", size)
	}
	return text
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
	if err := errors.Join(dst.Chmod(0o755), dst.Close()); err != nil {
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
