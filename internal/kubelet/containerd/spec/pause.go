package spec

import (
	specs "github.com/opencontainers/runtime-spec/specs-go"

	"minik8s/internal/kubelet/cri"
)

// Pause is the specification of a pod's pause container, which holds a process namespace for the others to join. root
// is a directory with the program in it.
func Pause(sandbox cri.SandboxConfig, sandboxDir, cgroup, root string) *specs.Spec {
	in := Input{Sandbox: sandbox, SandboxDir: sandboxDir}
	return &specs.Spec{
		Version: "1.1.0",
		Root:    &specs.Root{Path: root, Readonly: true},
		Process: &specs.Process{Args: []string{"/pause"}, Cwd: "/", NoNewPrivileges: true, Capabilities: &specs.LinuxCapabilities{}},
		Mounts: []specs.Mount{
			{Destination: "/proc", Type: "proc", Source: "proc"},
			{Destination: "/dev", Type: "tmpfs", Source: "tmpfs", Options: []string{"nosuid", "mode=755", "size=64k"}},
		},
		Linux: &specs.Linux{
			CgroupsPath: cgroup, Namespaces: in.namespaces(), MaskedPaths: maskedPaths, ReadonlyPaths: readonlyPaths,
			Resources: &specs.LinuxResources{Devices: []specs.LinuxDeviceCgroup{{Allow: false, Access: "rwm"}}},
		},
	}
}
