package containerd

import (
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/klauspost/compress/zstd"

	"minik8s/internal/disk"
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
// right size. Each takes its place by a rename, so a program that is running is not disturbed. settle, if it
// is not nil, has still to be called: it waits until the programs are on the disk, which is nothing to wait
// for with a start, and then writes the stamp. Without a stamp the next start unpacks them again, so they
// are whole also after a power cut.
func unpackBinaries(dir string) (b binaries, settle func() error, err error) {
	b = binaries{
		runc:  filepath.Join(dir, "runc"),
		shim:  filepath.Join(dir, "containerd-shim-runc-v2"),
		pause: filepath.Join(dir, "pause"),
	}
	stamp, err := embedded.ReadFile("bin/stamp")
	if errors.Is(err, fs.ErrNotExist) {
		return b, nil, errors.New("containerd: this binary was built without runc and the shim; run \"make build\", or use a running containerd with --containerd=SOCKET")
	}
	if err != nil {
		return b, nil, fmt.Errorf("containerd: %w", err)
	}
	paths := []string{b.runc, b.shim, b.pause}
	stampFile := filepath.Join(dir, "stamp")
	if have, err := os.ReadFile(stampFile); err == nil && string(have) == describeBuild(stamp, paths) {
		return b, nil, disk.Private(dir, 0o700)
	}
	if err := disk.Private(dir, 0o700); err != nil {
		return b, nil, fmt.Errorf("containerd: %w", err)
	}
	// While they are replaced there is no stamp, so what an interruption leaves is not taken for whole.
	if err := os.Remove(stampFile); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return b, nil, fmt.Errorf("containerd: %w", err)
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
		return b, nil, err
	}
	return b, func() error {
		for _, path := range paths {
			if err := disk.Sync(path); err != nil {
				return err
			}
		}
		return disk.WriteFile(stampFile, []byte(describeBuild(stamp, paths)), 0o600)
	}, nil
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
	return disk.PublishFrom(path, z, 0o755)
}
