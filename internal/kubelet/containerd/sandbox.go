package containerd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"

	"minik8s/internal/clock"
	"minik8s/internal/kubelet/containerd/sandbox"
	"minik8s/internal/kubelet/containerd/spec"
	"minik8s/internal/kubelet/cri"
)

// EnsureSandbox implements cri.Runtime.
func (r *Runtime) EnsureSandbox(ctx context.Context, cfg cri.SandboxConfig) (cri.Sandbox, error) {
	if !uidPattern.MatchString(cfg.PodUID) {
		return cri.Sandbox{}, fmt.Errorf("containerd: pod uid %q cannot be a file's name", cfg.PodUID)
	}
	ctx = r.ns(ctx)
	defer r.sandboxes.Busy()()
	if rec := r.records.get(cfg.PodUID); rec != nil {
		if r.whole(rec) && r.sandboxes.Whole(&rec.Sandbox) {
			return *r.sandbox(rec), nil
		}
		// Half-made, or its namespaces are lost, or its address: the rest of it is removed, with its containers, which cannot
		// move to the new one.
		if err := r.removePod(ctx, cfg.PodUID); err != nil {
			return cri.Sandbox{}, err
		}
	}
	rec, err := r.makeSandbox(ctx, cfg)
	if err != nil {
		// The record stays if this fails as well, and the next call begins with it.
		return cri.Sandbox{}, errors.Join(err, r.RemoveSandbox(context.WithoutCancel(ctx), cfg.PodUID))
	}
	return *r.sandbox(rec), nil
}

func (r *Runtime) makeSandbox(ctx context.Context, cfg cri.SandboxConfig) (*record, error) {
	if cfg.HostNetwork && cfg.Hostname == "" {
		cfg.Hostname = r.cfg.NodeName
	}
	rec := &record{Config: cfg, CreatedAt: clock.Now()}
	var kinds []string
	if !cfg.HostNetwork {
		kinds = append(kinds, "net", "uts")
	}
	if !cfg.HostIPC {
		kinds = append(kinds, "ipc")
	}
	s, err := r.sandboxes.Get(ctx, kinds)
	if err != nil {
		return nil, err
	}
	rec.Sandbox = *s
	// From here on it belongs to the pod, by its record. Before that, the next start would remove it.
	r.records.set(rec)
	if err := r.records.write(rec); err != nil {
		return rec, err
	}
	if err := r.writeEtcFiles(rec); err != nil {
		return rec, fmt.Errorf("containerd: %w", err)
	}
	if err := r.sandboxes.Configure(s, sandbox.Settings{Hostname: cfg.Hostname, Domain: cfg.Domain, Sysctls: cfg.Sysctls}); err != nil {
		return rec, err
	}
	if !cfg.HostNetwork {
		if err := r.net.AddHostPorts(s.ID, s.Addr, hostPorts(cfg.HostPorts)); err != nil {
			return rec, fmt.Errorf("containerd: %w", err)
		}
	}
	if cfg.ShareProcessNamespace && !cfg.HostPID {
		if err := r.startPause(ctx, rec); err != nil {
			return rec, err
		}
	}
	done := *rec
	done.Whole = true
	if err := r.records.write(&done); err != nil {
		return rec, err
	}
	r.records.set(&done)
	return &done, nil
}

// writeEtcFiles writes the pod's hosts, hostname and resolv.conf.
func (r *Runtime) writeEtcFiles(rec *record) error {
	files, err := spec.EtcFiles(rec.Config, rec.Sandbox.Addr)
	if err != nil {
		return err
	}
	size := 0
	for _, data := range files {
		size += len(data)
	}
	if err := r.sandboxes.GrowScratch(rec.Sandbox.ID, size); err != nil {
		return err
	}
	dir := r.scratchDir(rec)
	for name, data := range files {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// RemoveSandbox implements cri.Runtime.
func (r *Runtime) RemoveSandbox(ctx context.Context, uid string) error {
	rec := r.records.get(uid)
	if rec == nil {
		return nil
	}
	ctx = r.ns(ctx)
	defer r.sandboxes.Busy()()
	if rec.Whole {
		half := *rec
		half.Whole = false
		if err := r.records.write(&half); err != nil {
			return err
		}
		rec = &half
		r.records.set(rec)
	}
	for _, c := range r.containers.OfPod(uid) {
		// There should be none.
		if c.Meta.Name != pauseName {
			if err := c.Remove(ctx); err != nil {
				return err
			}
		}
	}
	if rec.Sandbox.ID != "" {
		if rec.Config.ShareProcessNamespace {
			if err := r.removePause(ctx, rec); err != nil {
				return err
			}
		}
		if err := r.sandboxes.Remove(&rec.Sandbox); err != nil {
			return err
		}
	}
	return r.records.remove(uid)
}

// removePod removes the containers of a pod and its sandbox.
func (r *Runtime) removePod(ctx context.Context, uid string) error {
	for _, c := range r.containers.OfPod(uid) {
		if err := r.RemoveContainer(ctx, c.Meta.ID); err != nil {
			return err
		}
	}
	return r.RemoveSandbox(ctx, uid)
}

// sandbox converts a record for the kubelet. The node's addresses are read only for a pod on the host's network.
func (r *Runtime) sandbox(rec *record) *cri.Sandbox {
	s := &cri.Sandbox{
		ID:     rec.Sandbox.ID,
		PodUID: rec.Config.PodUID, PodNamespace: rec.Config.PodNamespace, PodName: rec.Config.PodName,
		CreatedAt: rec.CreatedAt, HostNetwork: rec.Config.HostNetwork, Whole: r.whole(rec),
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
	return cmp.Or(r.sandboxes.ScratchDir(rec.Sandbox.ID), r.records.podDir(rec.Config.PodUID))
}
