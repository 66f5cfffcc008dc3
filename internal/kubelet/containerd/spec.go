package containerd

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/containerd/containerd/contrib/seccomp"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	specs "github.com/opencontainers/runtime-spec/specs-go"

	"minik8s/internal/kubelet/cri"
)

// specInput is all that a container's OCI specification depends on.
type specInput struct {
	container cri.ContainerConfig
	sandbox   cri.SandboxConfig
	image     ocispec.ImageConfig
	user      user
	cgroup    string
	slotDir   string // where the sandbox's namespaces are pinned
	etcDir    string // where its hosts, hostname and resolv.conf are
	pidPath   string // of the pid namespace the pod shares; empty: its own
	host      facts
}

// defaultPath is PATH where the image says none.
const defaultPath = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// defaultCapabilities are those of Docker and Kubernetes.
var defaultCapabilities = []string{
	"CAP_CHOWN", "CAP_DAC_OVERRIDE", "CAP_FSETID", "CAP_FOWNER", "CAP_MKNOD", "CAP_NET_RAW", "CAP_SETGID",
	"CAP_SETUID", "CAP_SETFCAP", "CAP_SETPCAP", "CAP_NET_BIND_SERVICE", "CAP_SYS_CHROOT", "CAP_KILL",
	"CAP_AUDIT_WRITE",
}

var (
	maskedPaths = []string{
		"/proc/asound", "/proc/acpi", "/proc/interrupts", "/proc/kcore", "/proc/keys", "/proc/latency_stats",
		"/proc/timer_list", "/proc/timer_stats", "/proc/sched_debug", "/proc/scsi", "/sys/firmware",
		"/sys/devices/virtual/powercap",
	}
	readonlyPaths = []string{"/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger"}
)

// errNoCommand is a container with nothing to run.
var errNoCommand = errors.New("no command specified: neither the container nor its image has one")

// buildSpec decides everything about the container's process and its surroundings. It is a pure
// function but for the seccomp profile and devices, which it reads from the host.
func buildSpec(in specInput) (*specs.Spec, error) {
	c := in.container
	args, err := commandLine(c.Command, c.Args, in.image.Entrypoint, in.image.Cmd)
	if err != nil {
		return nil, fmt.Errorf("containerd: container %q: %w", c.Name, err)
	}
	caps, err := capabilities(c.Security, in.host.capabilities)
	if err != nil {
		return nil, fmt.Errorf("containerd: container %q: %w", c.Name, err)
	}
	oom := in.host.clampOOM(c.OOMScoreAdj)
	spec := &specs.Spec{
		Version:  "1.1.0",
		Hostname: "", // that of the sandbox's uts namespace
		Root:     &specs.Root{Path: "rootfs", Readonly: c.Security.ReadOnlyRootFS},
		Process: &specs.Process{
			Terminal: c.TTY, Args: args, Cwd: firstOf(c.WorkingDir, in.image.WorkingDir, "/"),
			Env:  environment(in),
			User: specs.User{UID: in.user.uid, GID: in.user.gid, AdditionalGids: in.user.groups},
			Capabilities: &specs.LinuxCapabilities{
				Bounding: caps, Effective: caps, Permitted: caps,
			},
			NoNewPrivileges: c.Security.NoNewPrivileges,
			OOMScoreAdj:     &oom,
		},
		Mounts: mounts(in),
		Linux: &specs.Linux{
			CgroupsPath: in.cgroup,
			Namespaces:  in.namespaces(),
			Resources:   resources(c.Resources, in.host),
		},
		Annotations: map[string]string{"io.kubernetes.cri.container-name": c.Name},
	}
	for _, m := range c.Mounts {
		// A mount that follows the host's can do so only if the root does.
		if m.Propagation == "Bidirectional" {
			spec.Linux.RootfsPropagation = "rshared"
		} else if m.Propagation == "HostToContainer" && spec.Linux.RootfsPropagation == "" {
			spec.Linux.RootfsPropagation = "rslave"
		}
	}
	if c.Security.Privileged {
		spec.Linux.Resources.Devices = []specs.LinuxDeviceCgroup{{Allow: true, Access: "rwm"}}
		spec.Linux.Devices, err = hostDevices("/dev")
	} else {
		if c.Security.MaskProc {
			spec.Linux.MaskedPaths, spec.Linux.ReadonlyPaths = maskedPaths, readonlyPaths
		}
		spec.Linux.Resources.Devices = []specs.LinuxDeviceCgroup{{Allow: false, Access: "rwm"}}
		err = addDevices(spec, c.Devices)
	}
	if err != nil {
		return nil, fmt.Errorf("containerd: container %q: %w", c.Name, err)
	}
	if spec.Linux.Seccomp, err = seccompProfile(c.Security, spec); err != nil {
		return nil, fmt.Errorf("containerd: container %q: seccomp profile: %w", c.Name, err)
	}
	return spec, nil
}

// commandLine is Kubernetes' rule: a command replaces the image's entrypoint and its cmd, arguments
// replace its cmd.
func commandLine(command, args, entrypoint, cmd []string) ([]string, error) {
	switch {
	case len(command) > 0:
		return slices.Concat(command, args), nil
	case len(args) > 0:
		cmd = args
	}
	line := slices.Concat(entrypoint, cmd)
	if len(line) == 0 || line[0] == "" {
		return nil, errNoCommand
	}
	return line, nil
}

// environment is the image's, the host name, and what the container says, which wins.
func environment(in specInput) []string {
	var env []string
	set := func(kv string) {
		name, _, _ := strings.Cut(kv, "=")
		for i, have := range env {
			if strings.HasPrefix(have, name+"=") {
				env[i] = kv
				return
			}
		}
		env = append(env, kv)
	}
	set(defaultPath)
	if in.container.TTY {
		set("TERM=xterm")
	}
	for _, kv := range in.image.Env {
		set(kv)
	}
	if in.sandbox.Hostname != "" { // whatever the image was built on
		set("HOSTNAME=" + in.sandbox.Hostname)
	}
	for _, v := range in.container.Env {
		set(v.Name + "=" + v.Value)
	}
	return env
}

// namespaces are the container's own mount and, unless shared, pid namespace, and the sandbox's.
func (in specInput) namespaces() []specs.LinuxNamespace {
	list := []specs.LinuxNamespace{{Type: specs.MountNamespace}}
	pinned := func(kind string, t specs.LinuxNamespaceType) {
		list = append(list, specs.LinuxNamespace{Type: t, Path: filepath.Join(in.slotDir, kind)})
	}
	if !in.sandbox.HostNetwork {
		pinned("net", specs.NetworkNamespace)
		pinned("uts", specs.UTSNamespace)
	}
	if !in.sandbox.HostIPC {
		pinned("ipc", specs.IPCNamespace)
	}
	if !in.sandbox.HostPID {
		list = append(list, specs.LinuxNamespace{Type: specs.PIDNamespace, Path: in.pidPath})
	}
	if in.host.cgroup2 && !in.container.Security.Privileged {
		list = append(list, specs.LinuxNamespace{Type: specs.CgroupNamespace})
	}
	return list
}

func resources(r cri.Resources, host facts) *specs.LinuxResources {
	out := &specs.LinuxResources{CPU: &specs.LinuxCPU{}, Memory: &specs.LinuxMemory{}}
	if r.CPUShares > 0 {
		out.CPU.Shares = &r.CPUShares // runc turns it into a weight on cgroup v2
	}
	if r.CPUQuota != 0 {
		out.CPU.Quota = &r.CPUQuota
	}
	if r.CPUPeriod > 0 {
		out.CPU.Period = &r.CPUPeriod
	}
	if r.MemoryLimit > 0 {
		out.Memory.Limit = &r.MemoryLimit
		if host.countsSwap {
			out.Memory.Swap = &r.MemoryLimit // of both together: no swap at all
		}
	}
	if host.memory2 {
		// What is left of a container one process of which was killed for want of memory is seldom of use.
		out.Unified = map[string]string{"memory.oom.group": "1"}
	}
	if r.PidsLimit > 0 {
		out.Pids = &specs.LinuxPids{Limit: r.PidsLimit}
	}
	return out
}

// capabilities are the default ones with what is added and dropped; those the daemon itself does not
// have cannot be given and are left out, as in a machine inside a container.
func capabilities(s cri.Security, have []string) ([]string, error) {
	var list []string
	all := func(names []string) bool {
		return slices.ContainsFunc(names, func(n string) bool { return strings.EqualFold(n, "ALL") })
	}
	switch {
	case s.Privileged, all(s.AddCapabilities):
		list = slices.Clone(have)
	case !all(s.DropCapabilities):
		list = slices.Clone(defaultCapabilities)
	}
	for _, n := range s.AddCapabilities {
		if n = capName(n); n != "CAP_ALL" && !slices.Contains(list, n) {
			list = append(list, n)
		}
	}
	if !s.Privileged {
		for _, n := range s.DropCapabilities {
			n = capName(n)
			list = slices.DeleteFunc(list, func(x string) bool { return x == n })
		}
	}
	list = slices.DeleteFunc(list, func(x string) bool { return !slices.Contains(have, x) })
	return list, nil
}

func capName(n string) string {
	n = strings.ToUpper(n)
	if !strings.HasPrefix(n, "CAP_") {
		n = "CAP_" + n
	}
	return n
}

// seccompProfile is the profile to load; nil for none.
func seccompProfile(s cri.Security, spec *specs.Spec) (*specs.LinuxSeccomp, error) {
	switch {
	case s.Privileged, s.Seccomp == "Unconfined":
		return nil, nil
	case s.Seccomp == "", s.Seccomp == "RuntimeDefault":
		p := seccomp.DefaultProfile(spec)
		// The first architecture is the machine's own. The profile for its 32-bit relatives triples what
		// libseccomp computes at every start, 16 ms instead of 4, and is for programs hardly any
		// image has. Such a program needs Unconfined or a profile of its own.
		if len(p.Architectures) > 1 {
			p.Architectures = p.Architectures[:1]
		}
		return p, nil
	}
	data, err := os.ReadFile(s.Seccomp)
	if err != nil {
		return nil, err
	}
	p := &specs.LinuxSeccomp{}
	if err := json.Unmarshal(data, p); err != nil {
		return nil, fmt.Errorf("%s: %w", s.Seccomp, err)
	}
	return p, nil
}
