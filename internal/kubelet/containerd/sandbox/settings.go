package sandbox

import (
	"fmt"
	"os"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// Settings are a pod's settings of its sandbox's namespaces.
type Settings struct {
	// Hostname and Domain are not used by a sandbox without a uts namespace.
	Hostname, Domain string
	// Sysctls are settings of the kernel, by their names, in namespaces that the sandbox has.
	Sysctls map[string]string
}

// Configure gives a sandbox's namespaces the pod's settings. It is an error if a sysctl is not of one of its namespaces.
func (p *Pool) Configure(s *Sandbox, set Settings) error {
	named := slices.Contains(s.Kinds, "uts")
	kinds := s.Kinds
	if len(set.Sysctls) == 0 {
		if !named {
			return nil
		}
		kinds = []string{"uts"}
	}
	return p.Enter(s.ID, kinds, func() error {
		if named {
			if err := unix.Sethostname([]byte(set.Hostname)); err != nil {
				return fmt.Errorf("containerd: host name %q: %w", set.Hostname, err)
			}
			if set.Domain != "" {
				if err := unix.Setdomainname([]byte(set.Domain)); err != nil {
					return fmt.Errorf("containerd: domain name %q: %w", set.Domain, err)
				}
			}
		}
		for key, value := range set.Sysctls {
			if !allowedSysctl(s.Kinds, key) {
				return fmt.Errorf("containerd: sysctl %q is not of a namespace of the pod", strings.ReplaceAll(key, "/", "."))
			}
			path := "/proc/sys/" + strings.ReplaceAll(key, ".", "/")
			if err := os.WriteFile(path, []byte(value), 0); err != nil {
				return fmt.Errorf("containerd: sysctl %s: %w", key, err)
			}
		}
		return nil
	})
}

// allowedSysctl reports whether a setting is of one of these kinds of namespaces.
func allowedSysctl(kinds []string, key string) bool {
	key = strings.ReplaceAll(key, "/", ".")
	switch {
	case strings.Contains(key, ".."):
	case strings.HasPrefix(key, "net."):
		return slices.Contains(kinds, "net")
	case strings.HasPrefix(key, "kernel.shm"), strings.HasPrefix(key, "kernel.msg"), key == "kernel.sem",
		strings.HasPrefix(key, "fs.mqueue."):
		return slices.Contains(kinds, "ipc")
	}
	return false
}
