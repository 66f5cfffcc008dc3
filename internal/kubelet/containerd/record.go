package containerd

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
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

func (r *Runtime) sandboxDir(uid string) string { return filepath.Join(r.cfg.RunDir, "sandboxes", uid) }

func (r *Runtime) writeRecord(rec *record) error {
	data, err := json.Marshal(rec)
	if err != nil {
		return fmt.Errorf("containerd: %w", err)
	}
	dir := r.sandboxDir(rec.Config.PodUID)
	if err := os.MkdirAll(dir, 0o711); err != nil {
		return fmt.Errorf("containerd: %w", err)
	}
	if err := disk.Publish(filepath.Join(dir, "record.json"), data, 0o600); err != nil {
		return fmt.Errorf("containerd: %w", err)
	}
	return nil
}

// readRecords are the records of the last run. A directory without a readable record belongs to a sandbox that was
// only started.
func (r *Runtime) readRecords() ([]*record, error) {
	entries, err := os.ReadDir(filepath.Join(r.cfg.RunDir, "sandboxes"))
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("containerd: %w", err)
	}
	var list []*record
	for _, e := range entries {
		rec := &record{}
		data, err := os.ReadFile(filepath.Join(r.sandboxDir(e.Name()), "record.json"))
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

// sandbox converts a record for the kubelet. The node's addresses are read only for a pod on the host's network.
func (r *Runtime) sandbox(rec *record) *cri.Sandbox {
	s := &cri.Sandbox{
		ID:     rec.Sandbox.ID,
		PodUID: rec.Config.PodUID, PodNamespace: rec.Config.PodNamespace, PodName: rec.Config.PodName,
		CreatedAt: rec.CreatedAt, HostNetwork: rec.Config.HostNetwork, Whole: rec.Whole,
	}
	if rec.Whole {
		s.Scratch = r.scratchDir(rec)
	}
	switch {
	case rec.Config.HostNetwork:
		s.Addresses = r.net.HostAddrs()
	case rec.Sandbox.Addr.IsValid():
		s.Addresses = []netip.Addr{rec.Sandbox.Addr}
	}
	return s
}

// scratchDir is the directory of a pod's small files. In versions without a tmpfs per sandbox they are beside the
// record.
func (r *Runtime) scratchDir(rec *record) string {
	return cmp.Or(r.sandboxes.ScratchDir(rec.Sandbox.ID), r.sandboxDir(rec.Config.PodUID))
}
