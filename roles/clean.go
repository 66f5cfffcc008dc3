package roles

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"

	"golang.org/x/sys/unix"

	"minik8s/config"
	"minik8s/internal/kubelet/cgroup"
	"minik8s/internal/kubelet/containerd"
	"minik8s/internal/kubelet/volume"
)

// Clean undoes a daemon that has been stopped: it ends its pods and removes their networks, mounts and
// cgroups, and the data directory with everything in it. Calling it again, or where nothing is, is
// fine.
func Clean(ctx context.Context, cfg *config.Config, log *slog.Logger) error {
	if _, err := os.Stat(cfg.DataDir); errors.Is(err, os.ErrNotExist) {
		return nil
	}
	d := &Daemon{cfg: cfg, log: log}
	if err := d.takeLock(); err != nil {
		return err
	}
	defer d.Close()
	if _, err := os.Stat(d.path("containerd")); err == nil || cfg.Containerd != "" {
		if err := d.uninstall(ctx); err != nil {
			return fmt.Errorf("the pods could not all be removed: %w; nothing was deleted, try again", err)
		}
	}
	if err := unmountBelow(cfg.DataDir); err != nil {
		return err
	}
	return os.RemoveAll(cfg.DataDir)
}

func (d *Daemon) uninstall(ctx context.Context) error {
	if err := d.holdCgroup(); err != nil {
		return err
	}
	rt, err := containerd.New(ctx, containerd.Config{DataDir: d.cfg.DataDir, Socket: d.cfg.Containerd, NodeName: d.cfg.NodeName,
		PodCIDR: d.cfg.PodCIDR, CgroupRoot: d.cfg.CgroupRoot, Spare: -1,
		NodePorts: []uint16{uint16(d.cfg.APIPort)}, Log: d.log})
	if err != nil {
		return err
	}
	errs := []error{rt.Uninstall(ctx)}
	volumes, cgroups := volume.New(d.path("pods"), nil), cgroup.New(d.cfg.CgroupRoot)
	mounted, err := volumes.Pods()
	errs = append(errs, err)
	for _, uid := range mounted {
		errs = append(errs, volumes.TearDown(uid))
	}
	grouped, err := cgroups.Pods()
	errs = append(errs, err)
	for _, uid := range grouped {
		errs = append(errs, cgroups.Remove(uid))
	}
	return errors.Join(append(errs, cgroups.RemoveRoot(), rt.Close())...)
}

// unmountBelow takes away what is still mounted below a directory, so that removing the directory
// removes nothing of somebody else's.
func unmountBelow(dir string) error {
	data, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return err
	}
	lines := strings.Split(string(data), "\n")
	for i := len(lines) - 1; i >= 0; i-- { // the last mounted first
		f := strings.Fields(lines[i])
		if len(f) < 5 {
			continue
		}
		at := unescape(f[4])
		if !strings.HasPrefix(at, dir+"/") {
			continue
		}
		if err := unix.Unmount(at, unix.MNT_DETACH); err != nil {
			return fmt.Errorf("unmounting %s: %w", at, err)
		}
	}
	return nil
}

// unescape reads mountinfo's octal escapes.
func unescape(s string) string {
	return strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`).Replace(s)
}
