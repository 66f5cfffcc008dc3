package containerd

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

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
	if rec := r.record(cfg.PodUID); rec != nil {
		if rec.Whole && r.sandboxes.Whole(ctx, &rec.Sandbox) {
			return *r.sandbox(rec), nil
		}
		// Half-made, or its namespaces or shim are lost: the rest of it is removed, with its containers, which cannot
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
	rec := &record{Config: cfg, CreatedAt: time.Now()}
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
	r.setRecord(rec)
	if err := r.writeRecord(rec); err != nil {
		return rec, err
	}
	if err := r.writeEtcFiles(rec); err != nil {
		return rec, fmt.Errorf("containerd: %w", err)
	}
	if err := r.configure(cfg, s); err != nil {
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
	if err := r.writeRecord(&done); err != nil {
		return rec, err
	}
	r.setRecord(&done)
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

// configure gives the sandbox's namespaces the pod's host name and kernel settings.
func (r *Runtime) configure(cfg cri.SandboxConfig, s *sandbox.Sandbox) error {
	if len(s.Kinds) == 0 && len(cfg.Sysctls) == 0 {
		return nil
	}
	if cfg.HostNetwork && len(cfg.Sysctls) == 0 {
		return nil
	}
	kinds := s.Kinds
	if len(cfg.Sysctls) == 0 {
		kinds = []string{"uts"}
	}
	return r.sandboxes.Enter(s.ID, kinds, func() error {
		if !cfg.HostNetwork {
			if err := unix.Sethostname([]byte(cfg.Hostname)); err != nil {
				return fmt.Errorf("containerd: host name %q: %w", cfg.Hostname, err)
			}
			if cfg.Domain != "" {
				if err := unix.Setdomainname([]byte(cfg.Domain)); err != nil {
					return fmt.Errorf("containerd: domain name %q: %w", cfg.Domain, err)
				}
			}
		}
		for key, value := range cfg.Sysctls {
			if err := allowedSysctl(cfg, key); err != nil {
				return err
			}
			path := "/proc/sys/" + strings.ReplaceAll(key, ".", "/")
			if err := os.WriteFile(path, []byte(value), 0); err != nil {
				return fmt.Errorf("containerd: sysctl %s: %w", key, err)
			}
		}
		return nil
	})
}

// allowedSysctl refuses a setting that is not namespaced, or not in a namespace of the pod.
func allowedSysctl(cfg cri.SandboxConfig, key string) error {
	key = strings.ReplaceAll(key, "/", ".")
	var ok bool
	switch {
	case strings.Contains(key, ".."):
	case strings.HasPrefix(key, "net."):
		ok = !cfg.HostNetwork
	case strings.HasPrefix(key, "kernel.shm"), strings.HasPrefix(key, "kernel.msg"), key == "kernel.sem",
		strings.HasPrefix(key, "fs.mqueue."):
		ok = !cfg.HostIPC
	}
	if !ok {
		return fmt.Errorf("containerd: sysctl %q is not of a namespace of the pod", key)
	}
	return nil
}

// RemoveSandbox implements cri.Runtime.
func (r *Runtime) RemoveSandbox(ctx context.Context, uid string) error {
	rec := r.record(uid)
	if rec == nil {
		return nil
	}
	ctx = r.ns(ctx)
	defer r.sandboxes.Busy()()
	if rec.Whole {
		half := *rec
		half.Whole = false
		if err := r.writeRecord(&half); err != nil {
			return err
		}
		rec = &half
		r.setRecord(rec)
	}
	for _, c := range r.containersOf(uid) {
		// There should be none: without the shim their exits would not be reported.
		if c.meta.Name != pauseName {
			if err := r.removeContainer(ctx, c); err != nil {
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
		if err := r.sandboxes.Remove(ctx, &rec.Sandbox); err != nil {
			return err
		}
	}
	if err := os.RemoveAll(r.sandboxDir(uid)); err != nil {
		return fmt.Errorf("containerd: %w", err)
	}
	r.dropRecord(uid)
	return nil
}

// removePod removes the containers of a pod and its sandbox.
func (r *Runtime) removePod(ctx context.Context, uid string) error {
	for _, c := range r.containersOf(uid) {
		if err := r.RemoveContainer(ctx, c.meta.ID); err != nil {
			return err
		}
	}
	return r.RemoveSandbox(ctx, uid)
}
