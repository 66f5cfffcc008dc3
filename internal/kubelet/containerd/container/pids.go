package container

import (
	"fmt"
	"os"

	"minik8s/internal/kubelet/cgroup"
	"minik8s/internal/kubelet/cri"
)

// OpenPIDNamespace opens the process namespace of a running container. The file refers to that namespace even if the
// process ends meanwhile and another gets its number.
func (c *Container) OpenPIDNamespace() (*os.File, error) {
	s, pid := c.get()
	if s.State != cri.Running {
		return nil, fmt.Errorf("containerd: container %s, whose processes were to be shared, is not running", c.Meta.Name)
	}
	f, err := os.Open(fmt.Sprintf("/proc/%d/ns/pid", pid))
	if err != nil {
		return nil, fmt.Errorf("containerd: the processes of container %s: %w", c.Meta.Name, err)
	}
	if !cgroup.Has(c.Meta.Cgroup, pid) {
		f.Close()
		return nil, fmt.Errorf("containerd: container %s, whose processes were to be shared, has ended", c.Meta.Name)
	}
	return f, nil
}
