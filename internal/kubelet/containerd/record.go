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

// record is what is written down about a pod's sandbox. It is written before the sandbox is put to use and
// removed after everything else, so a pod's sandbox that is in the kernel is also here.
type record struct {
	Config    cri.SandboxConfig
	Sandbox   sandbox.Sandbox `json:"Slot"` // as earlier versions named it
	CreatedAt time.Time
	// Whole is set when all steps are done. While it is not, the sandbox can only be finished by
	// starting over.
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

// readRecords is what the last run has left. A directory without a readable record is that of a
// sandbox that was only begun.
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

// sandbox is a record as others see it. The node's addresses are asked for only for a pod on the host's network.
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

// scratchDir is where a pod's small files are. Those of a version without a tmpfs per sandbox lie beside the record.
func (r *Runtime) scratchDir(rec *record) string {
	return cmp.Or(r.sandboxes.ScratchDir(rec.Sandbox.ID), r.sandboxDir(rec.Config.PodUID))
}
