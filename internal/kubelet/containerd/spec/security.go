package spec

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/containerd/containerd/contrib/seccomp"
	specs "github.com/opencontainers/runtime-spec/specs-go"

	"minik8s/internal/kubelet/cri"
)

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

// capabilities are the default ones with what is added and dropped; those that the daemon itself does not have are
// left out, as in a machine inside a container.
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
