package spec

import (
	"cmp"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	specs "github.com/opencontainers/runtime-spec/specs-go"

	"minik8s/internal/kubelet/cri"
)

// Input is all that a container's OCI specification depends on.
type Input struct {
	Container  cri.ContainerConfig
	Sandbox    cri.SandboxConfig
	Image      ocispec.ImageConfig
	User       User
	Cgroup     string
	SandboxDir string // where the sandbox's namespaces are pinned
	EtcDir     string // where its hosts, hostname and resolv.conf are
	PIDPath    string // of the pid namespace it joins; empty: its own
	Host       Host
}

// defaultPath is PATH where the image says none.
const defaultPath = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// ErrNoCommand means that neither the container nor its image has a command.
var ErrNoCommand = errors.New("no command specified: neither the container nor its image has one")

// Build makes a container's specification. It is pure, except that it reads a pod's own seccomp profile and devices
// from the host. The error is ErrNoCommand if there is no command, or says which setting is invalid.
func Build(in Input) (*specs.Spec, error) {
	c := in.Container
	args, err := commandLine(c.Command, c.Args, in.Image.Entrypoint, in.Image.Cmd)
	if err != nil {
		return nil, fmt.Errorf("container %q: %w", c.Name, err)
	}
	caps, err := capabilities(c.Security, in.Host.Capabilities)
	if err != nil {
		return nil, fmt.Errorf("container %q: %w", c.Name, err)
	}
	oom := in.Host.clampOOM(c.OOMScoreAdj)
	spec := &specs.Spec{
		Version:  "1.1.0",
		Hostname: "", // the sandbox's uts namespace has it
		Root:     &specs.Root{Path: "rootfs", Readonly: c.Security.ReadOnlyRootFS},
		Process: &specs.Process{
			Terminal: c.TTY, Args: args, Cwd: cmp.Or(c.WorkingDir, in.Image.WorkingDir, "/"),
			Env:  environment(in),
			User: specs.User{UID: in.User.UID, GID: in.User.GID, AdditionalGids: in.User.Groups},
			Capabilities: &specs.LinuxCapabilities{
				Bounding: caps, Effective: caps, Permitted: caps,
			},
			NoNewPrivileges: c.Security.NoNewPrivileges,
			OOMScoreAdj:     &oom,
		},
		Mounts: mounts(in),
		Linux: &specs.Linux{
			CgroupsPath:       in.Cgroup,
			Namespaces:        in.namespaces(),
			Resources:         resources(c.Resources, in.Host),
			RootfsPropagation: rootPropagation(c.Mounts),
		},
		Annotations: map[string]string{"io.kubernetes.cri.container-name": c.Name},
	}
	if err := confine(spec, c); err != nil {
		return nil, fmt.Errorf("container %q: %w", c.Name, err)
	}
	if spec.Linux.Seccomp, err = seccompProfile(c.Security, spec); err != nil {
		return nil, fmt.Errorf("container %q: seccomp profile: %w", c.Name, err)
	}
	return spec, nil
}

// confine gives a container the devices that it may use, and hides parts of /proc and /sys; a privileged one has all.
func confine(spec *specs.Spec, c cri.ContainerConfig) (err error) {
	if c.Security.Privileged {
		spec.Linux.Resources.Devices = []specs.LinuxDeviceCgroup{{Allow: true, Access: "rwm"}}
		spec.Linux.Devices, err = hostDevices("/dev")
		return err
	}
	if c.Security.MaskProc {
		spec.Linux.MaskedPaths, spec.Linux.ReadonlyPaths = maskedPaths, readonlyPaths
	}
	spec.Linux.Resources.Devices = []specs.LinuxDeviceCgroup{{Allow: false, Access: "rwm"}}
	return addDevices(spec, c.Devices)
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
		return nil, ErrNoCommand
	}
	return line, nil
}

// environment is the image's environment, the host name, and the container's environment, which takes precedence.
func environment(in Input) []string {
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
	if in.Container.TTY {
		set("TERM=xterm")
	}
	for _, kv := range in.Image.Env {
		set(kv)
	}
	if in.Sandbox.Hostname != "" { // replaces a HOSTNAME in the image
		set("HOSTNAME=" + in.Sandbox.Hostname)
	}
	for _, v := range in.Container.Env {
		set(v.Name + "=" + v.Value)
	}
	return env
}

// namespaces are the container's own mount and, unless shared, pid namespace, and the sandbox's.
func (in Input) namespaces() []specs.LinuxNamespace {
	list := []specs.LinuxNamespace{{Type: specs.MountNamespace}}
	pinned := func(kind string, t specs.LinuxNamespaceType) {
		list = append(list, specs.LinuxNamespace{Type: t, Path: filepath.Join(in.SandboxDir, kind)})
	}
	if !in.Sandbox.HostNetwork {
		pinned("net", specs.NetworkNamespace)
		pinned("uts", specs.UTSNamespace)
	}
	if !in.Sandbox.HostIPC {
		pinned("ipc", specs.IPCNamespace)
	}
	if !in.Sandbox.HostPID {
		list = append(list, specs.LinuxNamespace{Type: specs.PIDNamespace, Path: in.PIDPath})
	}
	if in.Host.Cgroup2 && !in.Container.Security.Privileged {
		list = append(list, specs.LinuxNamespace{Type: specs.CgroupNamespace})
	}
	return list
}

func resources(r cri.Resources, host Host) *specs.LinuxResources {
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
		if host.CountsSwap {
			out.Memory.Swap = &r.MemoryLimit // of both together: no swap at all
		}
	}
	if host.Memory2 {
		// All processes are killed together: the rest of a container is seldom of use after the OOM killer killed
		// one.
		out.Unified = map[string]string{"memory.oom.group": "1"}
	}
	if r.PidsLimit > 0 {
		out.Pids = &specs.LinuxPids{Limit: r.PidsLimit}
	}
	return out
}
