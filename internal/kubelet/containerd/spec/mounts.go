package spec

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	specs "github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"

	"minik8s/internal/kubelet/cri"
)

// mounts are the container's, parents before children. A mount of the pod replaces a default mount at the same path.
func mounts(in Input) []specs.Mount {
	list := defaultMounts(in)
	for _, m := range in.Container.Mounts {
		mine := podMount(m)
		list = slices.DeleteFunc(list, func(x specs.Mount) bool { return x.Destination == mine.Destination })
		list = append(list, mine)
	}
	depth := func(m specs.Mount) int { return strings.Count(path.Clean(m.Destination), "/") }
	slices.SortStableFunc(list, func(a, b specs.Mount) int { return depth(a) - depth(b) })
	return list
}

// defaultMounts are those that every container has.
func defaultMounts(in Input) []specs.Mount {
	c := in.Container
	access := "ro"
	if c.Security.Privileged {
		access = "rw"
	}
	shm := filepath.Join(in.SandboxDir, "shm")
	if in.Sandbox.HostIPC {
		shm = "/dev/shm"
	}
	etc := "rw"
	if c.Security.ReadOnlyRootFS {
		etc = "ro"
	}
	list := []specs.Mount{
		{Destination: "/proc", Type: "proc", Source: "proc", Options: []string{"nosuid", "noexec", "nodev"}},
		{Destination: "/dev", Type: "tmpfs", Source: "tmpfs", Options: []string{"nosuid", "strictatime", "mode=755", "size=65536k"}},
		{Destination: "/dev/pts", Type: "devpts", Source: "devpts", Options: []string{"nosuid", "noexec", "newinstance", "ptmxmode=0666", "mode=0620", "gid=5"}},
		{Destination: "/dev/mqueue", Type: "mqueue", Source: "mqueue", Options: []string{"nosuid", "noexec", "nodev"}},
		{Destination: "/sys", Type: "sysfs", Source: "sysfs", Options: []string{"nosuid", "noexec", "nodev", access}},
		{Destination: "/sys/fs/cgroup", Type: "cgroup", Source: "cgroup", Options: []string{"nosuid", "noexec", "nodev", "relatime", access}},
		{Destination: "/dev/shm", Type: "bind", Source: shm, Options: []string{"rbind", "nosuid", "nodev", "noexec"}},
		{Destination: "/etc/hosts", Type: "bind", Source: filepath.Join(in.EtcDir, "hosts"), Options: []string{"rbind", "rprivate", etc}},
		{Destination: "/etc/hostname", Type: "bind", Source: filepath.Join(in.EtcDir, "hostname"), Options: []string{"rbind", "rprivate", etc}},
		{Destination: "/etc/resolv.conf", Type: "bind", Source: filepath.Join(in.EtcDir, "resolv.conf"), Options: []string{"rbind", "rprivate", etc}},
	}
	if in.Sandbox.HostPID {
		// With the host's pid namespace, /proc is the host's.
		list[0] = specs.Mount{Destination: "/proc", Type: "bind", Source: "/proc", Options: []string{"rbind", "nosuid", "noexec", "nodev"}}
	}
	return list
}

// podMount is a mount of a volume.
func podMount(m cri.Mount) specs.Mount {
	propagation := "rprivate"
	switch m.Propagation {
	case "HostToContainer":
		propagation = "rslave"
	case "Bidirectional":
		propagation = "rshared"
	}
	rw := "rw"
	if m.ReadOnly {
		rw = "ro"
	}
	return specs.Mount{Destination: path.Clean(m.ContainerPath), Type: "bind", Source: m.HostPath, Options: []string{"rbind", propagation, rw}}
}

// rootPropagation is the propagation of the container's root: a mount can follow the host's mounts only if the root
// does.
func rootPropagation(mounts []cri.Mount) (mode string) {
	for _, m := range mounts {
		switch {
		case m.Propagation == "Bidirectional":
			return "rshared"
		case m.Propagation == "HostToContainer":
			mode = "rslave"
		}
	}
	return mode
}

// addDevices gives the container devices of the host: PATH or HOSTPATH:PATH[:rwm].
func addDevices(spec *specs.Spec, list []string) error {
	for _, entry := range list {
		parts := strings.Split(entry, ":")
		dst, access := parts[0], "rwm"
		if len(parts) > 1 && parts[1] != "" {
			dst = parts[1]
		}
		if len(parts) > 2 {
			access = parts[2]
		}
		d, err := device(parts[0], dst)
		if err != nil {
			return err
		}
		spec.Linux.Devices = append(spec.Linux.Devices, *d)
		spec.Linux.Resources.Devices = append(spec.Linux.Resources.Devices, specs.LinuxDeviceCgroup{
			Allow: true, Type: d.Type, Major: &d.Major, Minor: &d.Minor, Access: access,
		})
	}
	return nil
}

// hostDevices are all devices below dir but terminals and those every container has.
func hostDevices(dir string) ([]specs.LinuxDevice, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var list []specs.LinuxDevice
	for _, e := range entries {
		name := filepath.Join(dir, e.Name())
		switch {
		case e.IsDir():
			if slices.Contains([]string{"pts", "shm", "fd", "mqueue", ".lxc", ".lxd-mounts", ".udev"}, e.Name()) {
				continue
			}
			sub, err := hostDevices(name)
			if err != nil {
				return nil, err
			}
			list = append(list, sub...)
		case e.Name() == "console", e.Name() == "ptmx", e.Type()&fs.ModeDevice == 0:
		default:
			d, err := device(name, name)
			if errors.Is(err, fs.ErrNotExist) {
				continue
			}
			if err != nil {
				return nil, err
			}
			list = append(list, *d)
		}
	}
	return list, nil
}

func device(src, dst string) (*specs.LinuxDevice, error) {
	var st unix.Stat_t
	if err := unix.Stat(src, &st); err != nil {
		return nil, fmt.Errorf("device %s: %w", src, err)
	}
	d := &specs.LinuxDevice{Path: dst, Major: int64(unix.Major(st.Rdev)), Minor: int64(unix.Minor(st.Rdev))}
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFBLK:
		d.Type = "b"
	case unix.S_IFCHR:
		d.Type = "c"
	case unix.S_IFIFO:
		d.Type = "p"
	default:
		return nil, fmt.Errorf("%s is not a device", src)
	}
	mode := os.FileMode(st.Mode & 0o777)
	d.FileMode, d.UID, d.GID = &mode, &st.Uid, &st.Gid
	return d, nil
}
