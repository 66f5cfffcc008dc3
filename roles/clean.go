package roles

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"minik8s/config"
	"minik8s/internal/datadir"
	"minik8s/internal/kubelet/cgroup"
	"minik8s/internal/kubelet/containerd"
	"minik8s/internal/kubelet/volume"
	"minik8s/internal/logind"
	"minik8s/internal/network"
	"minik8s/internal/proxy"
)

// CleanOptions say how to clean.
type CleanOptions struct {
	// DryRun: only say what would be removed.
	DryRun bool
	// Confirm is called after it was printed to Out what will be removed; nil: no question is asked.
	Confirm func() (bool, error)
	// Out is where it is printed what will be removed.
	Out io.Writer
}

// Clean removes everything that a stopped daemon has made: its pods with their networks, mounts and cgroups, the
// files in its data directory, and the directory itself if the daemon created it. It is an error, before anything is
// touched, if the directory is not a data directory, if other files are in it, or if a daemon runs. Calling it again,
// or where there is nothing, is not an error.
func Clean(ctx context.Context, cfg *config.Config, log *slog.Logger, opts CleanOptions) error {
	dir, err := datadir.Look(cfg.DataDir)
	if errors.Is(err, fs.ErrNotExist) {
		fmt.Fprintf(opts.Out, "there is nothing at %s\n", cfg.DataDir)
		return nil
	}
	if err != nil {
		return err
	}
	content, err := dir.Contents()
	if err != nil {
		return err
	}
	if err := dir.Refusal(content); err != nil {
		return err
	}
	if !content.Ours {
		fmt.Fprintf(opts.Out, "there is nothing of minik8s in %s\n", dir.Real)
		return nil
	}
	c := &cleaning{dir: dir, content: content, cgroups: dir.Marker.Cgroups}
	if len(c.cgroups) == 0 {
		c.cgroups = []string{cfg.CgroupRoot}
	}
	// Use the directory's name at the daemon's last start, because running programs have it on their command lines.
	if real, err := filepath.EvalSymlinks(dir.Marker.Path); err == nil && real == dir.Real {
		cfg.DataDir = dir.Marker.Path
	}
	c.owner = owner(cfg)
	if opts.DryRun { // it changes nothing and takes no lock, so it works while a daemon runs
		return c.describe(opts.Out)
	}
	return c.run(ctx, &Daemon{cfg: cfg, log: log}, opts)
}

// run prints what will be removed, asks, and removes it: first the pods, because removing them needs the files.
func (c *cleaning) run(ctx context.Context, d *Daemon, opts CleanOptions) error {
	if err := d.takeLock(); err != nil {
		return err
	}
	defer d.Close()
	if err := c.describe(opts.Out); err != nil {
		return err
	}
	if opts.Confirm != nil {
		if ok, err := opts.Confirm(); err != nil || !ok {
			return errors.Join(err, errors.New("nothing was removed"))
		}
	}
	_, err := os.Stat(d.path("containerd"))
	pods := err == nil || d.cfg.Containerd != ""
	if pods || mayChangeNetwork() { // who may not has no network here
		var err error
		if d.network, err = network.New(d.networkConfig()); err != nil {
			return err
		}
	}
	if pods {
		if err := d.uninstall(ctx, c.cgroups); err != nil {
			return fmt.Errorf("the pods could not all be removed: %w; nothing was deleted, try again", err)
		}
	}
	if d.network != nil {
		if err := errors.Join(proxy.Teardown(d.servicesTable()), d.network.Teardown(ctx), d.askNoMore()); err != nil {
			return fmt.Errorf("the pods' network could not be removed: %w; no file was deleted, try again", err)
		}
	}
	return c.remove()
}

// cleaning is what Clean is going to do.
type cleaning struct {
	dir     *datadir.Dir
	content datadir.Contents
	cgroups []string
	owner   string
}

// describe prints what will be removed, and what will stay.
func (c *cleaning) describe(out io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "minik8sd clean removes\n")
	logs, _ := os.ReadDir(c.at("pods-logs")) //nolint:errcheck // not there: no pods
	for _, l := range logs {
		if p := strings.Split(l.Name(), "_"); len(p) == 3 {
			fmt.Fprintf(&b, "  the pod %s/%s, its containers, volumes and logs\n", p[0], p[1])
		}
	}
	for _, root := range c.cgroups {
		fmt.Fprintf(&b, "  the cgroup %s with all that runs in it\n", root)
	}
	fmt.Fprintf(&b, "  the pods' network: links, addresses and rules\n")
	files, err := logind.Files(c.owner)
	if err != nil {
		return err
	}
	for _, f := range files {
		fmt.Fprintf(&b, "  %s\n", f)
	}
	mounts, err := mountsBelow(c.dir.Real)
	if err != nil {
		return err
	}
	for _, at := range mounts {
		if !c.isForeignMount(at) {
			fmt.Fprintf(&b, "  the mount %s\n", at)
		}
	}
	for _, name := range c.content.Made {
		fmt.Fprintf(&b, "  %s", c.at(name))
		if to, err := os.Readlink(c.at(name)); err == nil {
			fmt.Fprintf(&b, ", a link; what is in %s stays", to)
		}
		fmt.Fprintln(&b)
	}
	if c.removesDirectory() {
		fmt.Fprintf(&b, "  %s\n", c.dir.Real)
	}
	if where, err := place(c.dir.Real); err == nil && where.servers != "" {
		fmt.Fprintf(&b, "It leaves what is in the etcd at %s: to give that cluster up, stop all its masters first, then remove it there with "+
			"\"etcdctl del --prefix %s/\".\n", where, where.prefix)
	}
	for _, name := range c.content.Given {
		fmt.Fprintf(&b, "It leaves %s, which minik8s did not make.\n", c.at(name))
	}
	_, err = io.WriteString(out, b.String())
	return err
}

func (c *cleaning) at(name string) string { return filepath.Join(c.dir.Real, name) }

// removesDirectory reports whether the directory itself is removed.
func (c *cleaning) removesDirectory() bool { return c.dir.Marker.Made && len(c.content.Given) == 0 }

// isForeignMount reports whether a mount is not the daemon's, but a file system that was mounted for it, on the
// directory or on one name in it. It is emptied and stays mounted.
func (c *cleaning) isForeignMount(at string) bool {
	return filepath.Dir(at) == c.dir.Real && at != c.at("run")
}

// remove unmounts and removes files. The marker and the lock are removed last, so that the directory is still
// recognised if remove is interrupted.
func (c *cleaning) remove() error {
	mounts, err := mountsBelow(c.dir.Real)
	if err != nil {
		return err
	}
	for _, at := range slices.Backward(mounts) { // the last mounted first
		if c.isForeignMount(at) {
			continue
		}
		if err := unix.Unmount(at, unix.MNT_DETACH|unix.UMOUNT_NOFOLLOW); err != nil {
			return fmt.Errorf("unmounting %s: %w", at, err)
		}
	}
	if mounts, err = mountsBelow(c.dir.Real); err != nil {
		return err
	}
	for _, at := range mounts {
		if !c.isForeignMount(at) {
			return fmt.Errorf("%s is still mounted; no file was removed, try again", at)
		}
	}
	last := []string{datadir.MarkerName, datadir.LockName}
	for _, name := range c.content.Made {
		if slices.Contains(last, name) {
			continue
		}
		if slices.Contains(mounts, c.at(name)) {
			err = removeWithin(c.at(name))
		} else {
			err = os.RemoveAll(c.at(name))
		}
		if err != nil {
			return err
		}
	}
	for _, name := range last {
		if err := os.Remove(c.at(name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	if !c.removesDirectory() {
		return nil
	}
	return os.Remove(c.dir.Real)
}

// removeWithin empties a directory.
func removeWithin(dir string) error {
	entries, err := os.ReadDir(dir)
	errs := []error{err}
	for _, e := range entries {
		errs = append(errs, os.RemoveAll(filepath.Join(dir, e.Name())))
	}
	return errors.Join(errs...)
}

func (d *Daemon) uninstall(ctx context.Context, roots []string) error {
	d.cfg.CgroupRoot = roots[0]
	if err := d.holdCgroup(); err != nil {
		return err
	}
	cfg := d.runtimeConfig()
	cfg.Warm = -1
	rt, err := containerd.New(ctx, cfg)
	if err != nil {
		return err
	}
	errs := []error{rt.Uninstall(ctx), logind.Forget(ctx, owner(d.cfg))}
	volumes := volume.New(d.path("pods"), nil)
	mounted, err := volumes.Pods()
	errs = append(errs, err)
	for _, uid := range mounted {
		errs = append(errs, volumes.TearDown(uid))
	}
	for _, root := range roots {
		cgroups := cgroup.New(root)
		grouped, err := cgroups.Pods()
		errs = append(errs, err)
		for _, uid := range grouped {
			errs = append(errs, cgroups.Remove(uid))
		}
		errs = append(errs, cgroups.RemoveRoot())
	}
	return errors.Join(append(errs, rt.Close())...)
}

// mountsBelow lists the mount points below a directory, in the order of mounting.
func mountsBelow(dir string) ([]string, error) {
	data, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil, err
	}
	var out []string
	for line := range strings.Lines(string(data)) {
		if f := strings.Fields(line); len(f) > 4 && strings.HasPrefix(unescape(f[4]), dir+"/") {
			out = append(out, unescape(f[4]))
		}
	}
	return out, nil
}

// unescape decodes mountinfo's octal escapes.
func unescape(s string) string {
	return strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`).Replace(s)
}
