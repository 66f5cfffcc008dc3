package volume

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	corev1 "k8s.io/api/core/v1"
)

// setUpHostPath checks that the path of the node is of the type asked for, or makes it.
func setUpHostPath(_ context.Context, _ Source, _ *corev1.Pod, v *corev1.Volume, _ string) error {
	path := v.HostPath.Path
	if !filepath.IsAbs(path) {
		return fmt.Errorf("hostPath %q is not an absolute path", path)
	}
	kind := corev1.HostPathUnset
	if v.HostPath.Type != nil {
		kind = *v.HostPath.Type
	}
	info, err := os.Stat(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("hostPath: %w", err)
	}
	missing := err != nil
	switch kind {
	case corev1.HostPathUnset, corev1.HostPathDirectoryOrCreate:
		if missing {
			return os.MkdirAll(path, 0o755)
		}
		if kind == corev1.HostPathUnset {
			return nil
		}
	case corev1.HostPathFileOrCreate:
		if missing {
			return makeFile(path)
		}
	}
	if missing {
		return fmt.Errorf("hostPath type check failed: %s does not exist (type %s)", path, kind)
	}
	if !ofType(info.Mode(), kind) {
		return fmt.Errorf("hostPath type check failed: %s is not of type %s", path, kind)
	}
	return nil
}

func makeFile(path string) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY, 0o644)
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("hostPath %s cannot be created: its directory does not exist", path)
	}
	if err != nil {
		return err
	}
	return f.Close()
}

func ofType(mode fs.FileMode, kind corev1.HostPathType) bool {
	switch kind {
	case corev1.HostPathDirectory, corev1.HostPathDirectoryOrCreate:
		return mode.IsDir()
	case corev1.HostPathFile, corev1.HostPathFileOrCreate:
		return mode.IsRegular()
	case corev1.HostPathSocket:
		return mode&fs.ModeSocket != 0
	case corev1.HostPathCharDev:
		return mode&fs.ModeCharDevice != 0
	case corev1.HostPathBlockDev:
		return mode&fs.ModeDevice != 0 && mode&fs.ModeCharDevice == 0
	}
	return false
}
