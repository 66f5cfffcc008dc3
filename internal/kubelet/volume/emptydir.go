package volume

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"
)

// emptyDirMode lets every user of the pod's containers write, as Kubernetes does, if the volume does not
// say otherwise.
const emptyDirMode = 0o777

func setUpEmptyDir(_ context.Context, _ Source, pod *corev1.Pod, v *corev1.Volume, dir string) error {
	if err := os.MkdirAll(dir, emptyDirMode); err != nil {
		return err
	}
	medium := corev1.StorageMediumDefault
	if v.EmptyDir != nil {
		medium = v.EmptyDir.Medium
	}
	switch medium {
	case corev1.StorageMediumDefault:
	case corev1.StorageMediumMemory:
		if err := mountTmpfs(dir, memoryBound(pod, v)); err != nil {
			return err
		}
	default:
		return fmt.Errorf("emptyDir medium %q is not supported: use \"\" (disk) or \"Memory\"", medium)
	}
	mode := wantedMode(v.EmptyDir)
	if sc := pod.Spec.SecurityContext; sc != nil && sc.FSGroup != nil {
		// Files that are created in it belong to the group, too.
		if err := os.Chown(dir, -1, int(*sc.FSGroup)); err != nil {
			return err
		}
		mode |= os.ModeSetgid | 0o770
	}
	return os.Chmod(dir, mode) // mkdir's mode is cut by the umask
}

// wantedMode is what the volume asks for, by Unix' numbers, in Go's.
func wantedMode(v *corev1.EmptyDirVolumeSource) os.FileMode {
	if v == nil || v.Mode == nil {
		return emptyDirMode
	}
	mode := os.FileMode(*v.Mode) & os.ModePerm
	if *v.Mode&unix.S_ISVTX != 0 {
		mode |= os.ModeSticky
	}
	return mode
}

// memoryBound is how large a tmpfs may get, in bytes: its sizeLimit, and no more than the memory
// that the pod's containers may use in all. 0: no bound of its own.
func memoryBound(pod *corev1.Pod, v *corev1.Volume) int64 {
	limit := int64(0)
	for i := range pod.Spec.Containers {
		m := pod.Spec.Containers[i].Resources.Limits.Memory().Value()
		if m == 0 {
			limit = 0
			break
		}
		limit += m
	}
	if s := v.EmptyDir.SizeLimit; s != nil && s.Value() > 0 && (limit == 0 || s.Value() < limit) {
		limit = s.Value()
	}
	return limit
}

func mountTmpfs(dir string, size int64) error {
	mounted, err := isMounted(dir)
	if err != nil || mounted {
		return err
	}
	options := "mode=0777"
	if size > 0 {
		options += fmt.Sprintf(",size=%d", size)
	}
	if err := unix.Mount("tmpfs", dir, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, options); err != nil {
		return fmt.Errorf("mounting tmpfs: %w", err)
	}
	return nil
}

// isMounted reports whether dir itself is a mount point.
func isMounted(dir string) (bool, error) {
	var st unix.Statx_t
	if err := unix.Statx(unix.AT_FDCWD, dir, 0, 0, &st); err != nil {
		return false, fmt.Errorf("%s: %w", dir, err)
	}
	if st.Attributes_mask&unix.STATX_ATTR_MOUNT_ROOT != 0 {
		return st.Attributes&unix.STATX_ATTR_MOUNT_ROOT != 0, nil
	}
	// A kernel before 5.8 does not say.
	dir, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return false, err
	}
	mounts, err := mountsBelow(filepath.Dir(dir))
	if err != nil {
		return false, err
	}
	for _, at := range mounts {
		if at == dir {
			return true, nil
		}
	}
	return false, nil
}
