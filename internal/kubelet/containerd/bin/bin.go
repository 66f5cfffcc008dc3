package bin

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
//go:embed *
var embedded embed.FS

// ErrNotBuilt says that this program was built without the products of deploy/runtime/build.sh.
var ErrNotBuilt = errors.New("this binary was built without runc and the keeper; run \"make build\", or use a running containerd with --containerd=SOCKET")

// Programs are the paths of the programs that containers need.
type Programs struct {
	Runc, Keeper, Pause string
}

// Built reports whether the programs are embedded.
func Built() bool {
	_, err := embedded.ReadFile("stamp")
	return err == nil
}

// Unpack writes the embedded programs to dir, unless those of the same build are there, with the right size. Each is
// replaced by a rename, which does not affect running programs.
//
// settle, if it is not nil, has to be called later. It waits until the programs are on the disk, which a start need
// not wait for, and then writes the stamp. Without a stamp the next start unpacks them again, so they are complete
// even after a power failure. The error is ErrNotBuilt if there is nothing to unpack.
func Unpack(dir string) (p Programs, settle func() error, err error) {
	p = Programs{
		Runc:   filepath.Join(dir, "runc"),
		Keeper: filepath.Join(dir, "keeper"),
		Pause:  filepath.Join(dir, "pause"),
	}
	stamp, err := embedded.ReadFile("stamp")
	if errors.Is(err, fs.ErrNotExist) {
		return p, nil, ErrNotBuilt
	}
	if err != nil {
		return p, nil, err
	}
	paths := []string{p.Runc, p.Keeper, p.Pause}
	stampFile := filepath.Join(dir, "stamp")
	if have, err := os.ReadFile(stampFile); err == nil && string(have) == describeBuild(stamp, paths) {
		return p, nil, disk.Private(dir, 0o700)
	}
	if err := disk.Private(dir, 0o700); err != nil {
		return p, nil, err
	}
	// There is no stamp while they are replaced, so the next start unpacks them again after an interruption.
	if err := os.Remove(stampFile); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return p, nil, err
	}
	if err := unpackAll(paths); err != nil {
		return p, nil, err
	}
	return p, func() error {
		for _, path := range paths {
			if err := disk.Sync(path); err != nil {
				return err
			}
		}
		return disk.WriteFile(stampFile, []byte(describeBuild(stamp, paths)), 0o600)
	}, nil
}

// unpackAll unpacks the programs concurrently.
func unpackAll(paths []string) error {
	errs := make([]error, len(paths))
	var wg sync.WaitGroup
	for i, path := range paths {
		wg.Go(func() {
			if err := unpack(filepath.Base(path)+".zst", path); err != nil {
				errs[i] = fmt.Errorf("unpacking %s: %w", filepath.Base(path), err)
			}
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

// describeBuild is the content of the stamp: the build's identity, and the sizes of its files.
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
