package kubelet

import (
	"os"
	"path/filepath"
	"strings"

	"k8s.io/apimachinery/pkg/types"
)

// dropLeftovers removes the files of pods that neither the API nor the runtime knows, left by a kill -9 between the
// removal of a pod's sandbox and that of its volumes. It is called with mu held, and lists the files at once, so that
// no later pod is mistaken for a removed one.
func (k *Kubelet) dropLeftovers(there map[types.UID]bool) {
	known := func(uid string) bool {
		return there[types.UID(uid)] || k.workers[types.UID(uid)] != nil
	}
	left := map[string]bool{}
	uids, err := k.volumes.Pods()
	if k.cgroups != nil && err == nil {
		var more []string
		more, err = k.cgroups.Pods()
		uids = append(uids, more...)
	}
	if err != nil {
		k.log.Warn("leftovers of pods not listed", "error", err)
	}
	for _, uid := range uids {
		if !known(uid) {
			left[uid] = true
		}
	}
	var logs []string
	dirs, err := os.ReadDir(k.LogDir())
	if err != nil && !os.IsNotExist(err) {
		k.log.Warn("leftover logs not listed", "error", err)
	}
	for _, d := range dirs {
		if uid := d.Name()[strings.LastIndexByte(d.Name(), '_')+1:]; !known(uid) {
			logs = append(logs, filepath.Join(k.LogDir(), d.Name()))
		}
	}
	if len(left) == 0 && len(logs) == 0 {
		return
	}
	k.spawn(func() { k.removeLeftovers(left, logs) })
}

func (k *Kubelet) removeLeftovers(uids map[string]bool, logs []string) {
	for uid := range uids {
		k.log.Info("removing what is left of a pod", "uid", uid)
		if err := k.volumes.TearDown(uid); err != nil {
			k.log.Warn("volumes of a pod that is gone not removed", "uid", uid, "error", err)
		}
		if err := k.removeCgroup(uid); err != nil {
			k.log.Warn("cgroup of a pod that is gone not removed", "uid", uid, "error", err)
		}
	}
	for _, dir := range logs {
		if err := os.RemoveAll(dir); err != nil {
			k.log.Warn("logs of a pod that is gone not removed", "dir", dir, "error", err)
		}
	}
}
