package kubelet

import "minik8s/internal/kubelet/cri"

// started says that a running container has come up.
func (in input) started(*cri.Container) bool { return true }
