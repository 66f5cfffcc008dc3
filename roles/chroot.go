package roles

import (
	"minik8s/config"
	"minik8s/internal/chroot"
	"minik8s/internal/kubelet/cgroup"
)

// LeaveChroot takes a worker that was started in a chroot out of it, to where the pods are that an earlier run has left: see
// package chroot. It has to come before anything that lasts, because it may start the program again.
func LeaveChroot(cfg *config.Config) error {
	if !cfg.Has(config.Worker) {
		return nil
	}
	return chroot.Leave(cgroup.New(cfg.CgroupRoot).Keepers)
}
