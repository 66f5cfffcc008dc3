package containerd

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"sync"
	"time"

	"minik8s/internal/disk"
	"minik8s/internal/kubelet/containerd/sandbox"
	"minik8s/internal/kubelet/cri"
)

// record is the record on disk of a pod's sandbox. It is written before the sandbox is used and removed after
// everything else, so every pod's sandbox in the kernel has a record.
type record struct {
	Config    cri.SandboxConfig
	Sandbox   sandbox.Sandbox `json:"Slot"` // as earlier versions named it
	CreatedAt time.Time
	// Whole is set when all steps are done. A sandbox that is not whole has to be made again.
	Whole bool
}

var uidPattern = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.-]{0,127}$`)

// records are the records of all pods' sandboxes, in memory and on disk. A record in memory is not changed; it is
// replaced by a copy.
type records struct {
	dir string // holds a directory per pod

	mu    sync.Mutex
	byPod map[string]*record // by the pod's uid
}

func newRecords(dir string) *records { return &records{dir: dir, byPod: map[string]*record{}} }

// get is the record of a pod, or nil.
func (r *records) get(uid string) *record {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.byPod[uid]
}

// uids are those of the pods that have a record.
func (r *records) uids() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Collect(maps.Keys(r.byPod))
}

// set publishes a record in memory.
func (r *records) set(rec *record) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.byPod[rec.Config.PodUID] = rec
}

// podDir is the directory of a pod's record.
func (r *records) podDir(uid string) string { return filepath.Join(r.dir, uid) }

// write writes a record to the disk.
func (r *records) write(rec *record) error {
	data, err := json.Marshal(rec)
	if err != nil {
		return fmt.Errorf("containerd: %w", err)
	}
	dir := r.podDir(rec.Config.PodUID)
	if err := os.MkdirAll(dir, 0o711); err != nil {
		return fmt.Errorf("containerd: %w", err)
	}
	if err := disk.Publish(filepath.Join(dir, "record.json"), data, 0o600); err != nil {
		return fmt.Errorf("containerd: %w", err)
	}
	return nil
}

// remove removes the record of a pod from the disk and then from memory.
func (r *records) remove(uid string) error {
	if err := os.RemoveAll(r.podDir(uid)); err != nil {
		return fmt.Errorf("containerd: %w", err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.byPod, uid)
	return nil
}

// read reads the records of the last run. A directory without a readable record belongs to a sandbox that was only
// started.
func (r *records) read() ([]*record, error) {
	entries, err := os.ReadDir(r.dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("containerd: %w", err)
	}
	var list []*record
	for _, e := range entries {
		rec := &record{}
		data, err := os.ReadFile(filepath.Join(r.podDir(e.Name()), "record.json"))
		if err == nil {
			err = json.Unmarshal(data, rec)
		}
		if err != nil || rec.Config.PodUID != e.Name() {
			rec = &record{Config: cri.SandboxConfig{PodUID: e.Name()}}
		}
		list = append(list, rec)
	}
	return list, nil
}
