package volume

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"

	"minik8s/internal/disk"
	"minik8s/internal/kubelet/cri"
)

// Manager makes and removes the volumes of one node's pods.
type Manager struct {
	root string
	from Source
}

// New makes a manager whose pods lie under root; it touches nothing. from may be nil if no pod has a
// volume that follows objects.
func New(root string, from Source) *Manager { return &Manager{root: root, from: from} }

// podDirMode is of the directories of pods.
const podDirMode = 0o750

// PodDir is the directory with everything of a pod.
func (m *Manager) PodDir(uid string) string { return filepath.Join(m.root, uid) }

// plugin serves one kind of volume.
type plugin struct {
	// kind names its directory.
	kind string
	// serves says whether v is of this kind.
	serves func(v *corev1.Volume) bool
	// setUp makes it, in dir if it has content of its own. It may be called again, and brings the
	// content up to date.
	setUp func(ctx context.Context, from Source, pod *corev1.Pod, v *corev1.Volume, dir string) error
	// path is what to mount into containers.
	path func(v *corev1.Volume, dir string) string
	// readOnly: containers cannot write to it.
	readOnly bool
}

func inDir(_ *corev1.Volume, dir string) string { return dir }

// projectedKind is a kind whose content follows objects or the pod.
func projectedKind(kind string, serves func(v *corev1.Volume) bool) plugin {
	return plugin{kind: kind, serves: serves, setUp: setUpProjected, path: inDir, readOnly: true}
}

// plugins are the kinds there are.
var plugins = []plugin{
	{
		kind:   "empty-dir",
		serves: func(v *corev1.Volume) bool { return v.EmptyDir != nil || v.VolumeSource == (corev1.VolumeSource{}) },
		setUp:  setUpEmptyDir, path: inDir,
	},
	{
		kind:   "host-path",
		serves: func(v *corev1.Volume) bool { return v.HostPath != nil },
		setUp:  setUpHostPath,
		path:   func(v *corev1.Volume, _ string) string { return v.HostPath.Path },
	},
	projectedKind("configmap", func(v *corev1.Volume) bool { return v.ConfigMap != nil }),
	projectedKind("secret", func(v *corev1.Volume) bool { return v.Secret != nil }),
	projectedKind("downward-api", func(v *corev1.Volume) bool { return v.DownwardAPI != nil }),
	projectedKind("projected", func(v *corev1.Volume) bool { return v.Projected != nil }),
}

func pluginFor(v *corev1.Volume) (*plugin, error) {
	for i := range plugins {
		if plugins[i].serves(v) {
			return &plugins[i], nil
		}
	}
	return nil, fmt.Errorf("volume %q is of a kind that is not supported: only emptyDir, hostPath, configMap, secret, downwardAPI and projected are", v.Name)
}

func (m *Manager) dir(uid string, p *plugin, name string) string {
	return filepath.Join(m.PodDir(uid), "volumes", p.kind, name)
}

// SetUp makes every volume of the pod, and updates those that follow objects or the pod. The error names each that
// could not be made, with the reason.
func (m *Manager) SetUp(ctx context.Context, pod *corev1.Pod) error {
	// Not accessible to other users: a volume's mode is meant for the pod's containers, which do not see its parent
	// directories. Other users of the machine could read files there, and store setuid programs.
	for _, dir := range []string{m.root, m.PodDir(string(pod.UID))} {
		if err := disk.Private(dir, podDirMode); err != nil {
			return err
		}
	}
	if err := os.MkdirAll(filepath.Join(m.PodDir(string(pod.UID)), "volumes"), podDirMode); err != nil {
		return err
	}
	var errs []error
	for i := range pod.Spec.Volumes {
		v := &pod.Spec.Volumes[i]
		p, err := pluginFor(v)
		if err == nil {
			err = p.setUp(ctx, m.from, pod, v, m.dir(string(pod.UID), p, v.Name))
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("MountVolume.SetUp failed for volume %q: %w", v.Name, err))
		}
	}
	return errors.Join(errs...)
}

// Dirs are the directories of a pod's volumes, by their names: of those whose content is the pod's own.
func (m *Manager) Dirs(pod *corev1.Pod) map[string]string {
	out := map[string]string{}
	for i := range pod.Spec.Volumes {
		v := &pod.Spec.Volumes[i]
		if p, err := pluginFor(v); err == nil {
			own := m.dir(string(pod.UID), p, v.Name)
			if p.path(v, own) == own {
				out[v.Name] = own
			}
		}
	}
	return out
}

// Mounts is what to mount into a container, in the order of its volumeMounts. expand expands $(NAME) in a
// subPathExpr; its error names an unknown one. What a subPath names is bound again at each call, so it is called once
// for each start.
func (m *Manager) Mounts(pod *corev1.Pod, c *corev1.Container, expand func(string) (string, error)) ([]cri.Mount, error) {
	var out []cri.Mount
	for i := range c.VolumeMounts {
		vm := &c.VolumeMounts[i]
		v := volumeNamed(pod, vm.Name)
		if v == nil {
			return nil, fmt.Errorf("volumeMount %q of container %q names a volume that the pod does not have", vm.Name, c.Name)
		}
		p, err := pluginFor(v)
		if err != nil {
			return nil, err
		}
		source := p.path(v, m.dir(string(pod.UID), p, v.Name))
		sub := vm.SubPath
		if vm.SubPathExpr != "" {
			if sub, err = expand(vm.SubPathExpr); err != nil {
				return nil, fmt.Errorf("failed to expand subPathExpr %q for volumeMount %q of container %q: %w", vm.SubPathExpr, vm.Name, c.Name, err)
			}
		}
		if sub != "" {
			at := filepath.Join(m.PodDir(string(pod.UID)), "subpaths", c.Name, fmt.Sprint(i))
			if source, err = bindSubPath(source, sub, at); err != nil {
				return nil, fmt.Errorf("failed to prepare subPath %q for volumeMount %q of container %q: %w", sub, vm.Name, c.Name, err)
			}
		}
		out = append(out, cri.Mount{HostPath: source, ContainerPath: absolute(vm.MountPath), ReadOnly: vm.ReadOnly || p.readOnly,
			Propagation: propagation(vm)})
	}
	return out, nil
}

func absolute(path string) string { return filepath.Join("/", path) }

func propagation(vm *corev1.VolumeMount) string {
	if vm.MountPropagation == nil || *vm.MountPropagation == corev1.MountPropagationNone {
		return ""
	}
	return string(*vm.MountPropagation)
}

func volumeNamed(pod *corev1.Pod, name string) *corev1.Volume {
	for i := range pod.Spec.Volumes {
		if pod.Spec.Volumes[i].Name == name {
			return &pod.Spec.Volumes[i]
		}
	}
	return nil
}

// Pods lists the uids for which there is anything.
func (m *Manager) Pods() ([]string, error) {
	entries, err := os.ReadDir(m.root)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var out []string
	for _, e := range entries {
		out = append(out, e.Name())
	}
	return out, nil
}

// TearDown unmounts and removes everything under the pod's directory. It may be called without SetUp.
func (m *Manager) TearDown(uid string) error {
	if uid == "" || strings.ContainsAny(uid, "/") || uid == "." || uid == ".." {
		return fmt.Errorf("%q is no uid of a pod", uid)
	}
	dir := m.PodDir(uid)
	if _, err := os.Lstat(dir); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err := unmountBelow(dir); err != nil {
		return err
	}
	return os.RemoveAll(dir)
}

// unmountBelow unmounts whatever is mounted under dir, the innermost first. Nothing is removed while
// a mount is left, for that would empty what is mounted.
func unmountBelow(dir string) error {
	dir, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return err
	}
	mounts, err := mountsBelow(dir)
	if err != nil || len(mounts) == 0 {
		return err
	}
	for _, at := range slices.Backward(mounts) {
		// Lazily: a process that still uses it must not prevent the pod's removal.
		if err := unix.Unmount(at, unix.MNT_DETACH|unix.UMOUNT_NOFOLLOW); err != nil && !errors.Is(err, unix.EINVAL) {
			return fmt.Errorf("unmounting %s: %w", at, err)
		}
	}
	left, err := mountsBelow(dir)
	if err != nil {
		return err
	}
	if len(left) > 0 {
		return fmt.Errorf("still mounted: %s", strings.Join(left, ", "))
	}
	return nil
}

// mountsBelow lists the mount points under dir in the order in which they were mounted. The kernel lists all of the machine's, of which a node
// with many pods has thousands.
func mountsBelow(dir string) ([]string, error) {
	data, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil, err
	}
	return mountsIn(data, dir), nil
}

func mountsIn(mountinfo []byte, dir string) (out []string) {
	prefix := []byte(" " + escapes.Replace(dir) + "/")
	for line := range bytes.Lines(mountinfo) {
		if !bytes.Contains(line, prefix) {
			continue
		}
		if fields := bytes.Fields(line); len(fields) >= 5 {
			if at := unescapes.Replace(string(fields[4])); strings.HasPrefix(at, dir+"/") {
				out = append(out, at)
			}
		}
	}
	return out
}

// mountinfo's octal escapes: a blank is \040.
var (
	escapes   = strings.NewReplacer(" ", `\040`, "\t", `\011`, "\n", `\012`, `\`, `\134`)
	unescapes = strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`)
)
