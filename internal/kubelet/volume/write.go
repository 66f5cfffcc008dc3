package volume

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// The layout of a projected volume is Kubernetes': the files lie in a directory named by the time, dataLink
// leads to it, and what containers open are links through dataLink. So one rename replaces all files.
const (
	dataLink   = "..data"
	newLink    = "..data_tmp"
	timeFormat = "..2006_01_02_15_04_05."
)

// write makes dir hold want, and nothing else, in one step; if it does already, nothing is touched. A
// group that is not negative owns the files and may read them.
func write(dir string, want payload, group int) error {
	for name := range want {
		if !filepath.IsLocal(name) || strings.HasPrefix(name, "..") {
			return fmt.Errorf("%q cannot be the path of a file in a volume", name)
		}
	}
	if err := os.Chmod(dir, 0o755|setgid(group)); err != nil { // mkdir's mode is cut by the umask
		return err
	}
	if group >= 0 {
		if err := os.Chown(dir, -1, group); err != nil {
			return err
		}
	}
	current, err := os.Readlink(filepath.Join(dir, dataLink))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err != nil || !holds(filepath.Join(dir, current), want, group) {
		if current, err = replace(dir, want, group); err != nil {
			return err
		}
	}
	return tidy(dir, current, want)
}

// written reports whether write has been here.
func written(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, dataLink))
	return err == nil
}

func setgid(group int) os.FileMode {
	if group < 0 {
		return 0
	}
	return os.ModeSetgid
}

// ownMode is a file's mode: a group that owns the volume can read it.
func ownMode(mode os.FileMode, group int) os.FileMode {
	if group >= 0 {
		mode |= 0o440
	}
	return mode
}

// replace writes want beside the present content and points dataLink to it.
func replace(dir string, want payload, group int) (string, error) {
	fresh, err := os.MkdirTemp(dir, time.Now().UTC().Format(timeFormat))
	if err != nil {
		return "", err
	}
	if err := fill(fresh, want, group); err != nil {
		return "", errors.Join(err, os.RemoveAll(fresh))
	}
	link := filepath.Join(dir, newLink)
	if err := os.Remove(link); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	if err := os.Symlink(filepath.Base(fresh), link); err != nil {
		return "", err
	}
	return filepath.Base(fresh), os.Rename(link, filepath.Join(dir, dataLink))
}

func fill(dir string, want payload, group int) error {
	own := func(path string, mode os.FileMode) error {
		if group >= 0 {
			if err := os.Chown(path, -1, group); err != nil {
				return err
			}
		}
		return os.Chmod(path, mode)
	}
	if err := own(dir, 0o755|setgid(group)); err != nil {
		return err
	}
	for name, f := range want {
		path := dir
		parts := strings.Split(filepath.Clean(name), "/")
		for _, part := range parts[:len(parts)-1] {
			path = filepath.Join(path, part)
			if err := os.Mkdir(path, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
				return err
			}
			if err := own(path, 0o755|setgid(group)); err != nil {
				return err
			}
		}
		path = filepath.Join(dir, name)
		if err := writeSynced(path, f.data); err != nil {
			return err
		}
		if err := own(path, ownMode(f.mode, group)); err != nil {
			return err
		}
	}
	return nil
}

// writeSynced writes a file that after a power cut is whole where it is there at all: a machine that comes up while its
// masters are away may have nothing else to start its pods with.
func writeSynced(path string, data []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

// holds reports whether dir has just the files of want.
func holds(dir string, want payload, group int) bool {
	seen := 0
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		name, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		f, ok := want[name]
		info, err := d.Info()
		if err != nil || !ok || info.Mode() != ownMode(f.mode, group) {
			return fs.ErrInvalid
		}
		data, err := os.ReadFile(path)
		if err != nil || !bytes.Equal(data, f.data) {
			return fs.ErrInvalid
		}
		seen++
		return nil
	})
	return err == nil && seen == len(want)
}

// tidy makes the links to what is in want and removes those to what is not, and directories of earlier
// contents. It may be cut off at any point and done again.
func tidy(dir, current string, want payload) error {
	wanted := map[string]bool{}
	for name := range want {
		first, _, _ := strings.Cut(filepath.Clean(name), "/")
		wanted[first] = true
	}
	for name := range wanted {
		err := os.Symlink(filepath.Join(dataLink, name), filepath.Join(dir, name))
		if err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		name := e.Name()
		if name == current || name == dataLink || wanted[name] {
			continue
		}
		// What is not our link was put there through a subPath, for example.
		if !strings.HasPrefix(name, "..") && e.Type()&fs.ModeSymlink == 0 {
			continue
		}
		if err := os.RemoveAll(filepath.Join(dir, name)); err != nil {
			return err
		}
	}
	return nil
}
