package kubelet

import (
	"context"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// dropLeftovers removes the files of pods that neither the API nor the runtime knows, left by a kill -9 between the
// removal of a pod's sandbox and that of its volumes. It is called with mu held, and lists the files at once, so that
// no later pod is mistaken for a removed one.
func (k *Kubelet) dropLeftovers(ctx context.Context, there map[types.UID]bool) {
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
		if !known(uidOfLogs(d.Name())) {
			logs = append(logs, filepath.Join(k.LogDir(), d.Name()))
		}
	}
	if len(left) == 0 && len(logs) == 0 {
		return
	}
	k.spawn(func() { k.removeLeftovers(ctx, left, logs) })
}

// The pauses between two attempts to remove what is busy.
const (
	firstLeftoverRetry = time.Second
	lastLeftoverRetry  = 5 * time.Minute
)

// removeLeftovers removes what is left of pods that are gone. What cannot be removed yet is told and tried again, until ctx
// ends, unless its pod has come back, as it may when the store is restored.
func (k *Kubelet) removeLeftovers(ctx context.Context, uids map[string]bool, logs []string) {
	for wait := firstLeftoverRetry; ; wait = min(2*wait, lastLeftoverRetry) {
		left := map[string]bool{}
		for uid := range uids {
			k.log.Info("removing what is left of a pod", "uid", uid)
			if err := k.volumes.TearDown(uid); err != nil {
				k.log.Warn("volumes of a pod that is gone not removed, trying again", "uid", uid, "error", err, "in", wait)
				left[uid] = true
			}
			if err := k.removeCgroup(uid); err != nil {
				k.log.Warn("cgroup of a pod that is gone not removed, trying again", "uid", uid, "error", err, "in", wait)
				left[uid] = true
			}
		}
		var busy []string
		for _, dir := range logs {
			if err := os.RemoveAll(dir); err != nil {
				k.log.Warn("logs of a pod that is gone not removed, trying again", "dir", dir, "error", err, "in", wait)
				busy = append(busy, dir)
			}
		}
		if len(left) == 0 && len(busy) == 0 {
			return
		}
		t := time.NewTimer(wait)
		select {
		case <-t.C:
		case <-ctx.Done():
			t.Stop()
			return
		}
		k.mu.Lock()
		maps.DeleteFunc(left, func(uid string, _ bool) bool { return k.workers[types.UID(uid)] != nil })
		logs = slices.DeleteFunc(busy, func(dir string) bool { return k.workers[types.UID(uidOfLogs(dir))] != nil })
		k.mu.Unlock()
		uids = left
	}
}

// uidOfLogs is the UID of the pod whose logs are in a directory.
func uidOfLogs(dir string) string { return dir[strings.LastIndexByte(dir, '_')+1:] }
