package datadir

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"minik8s/internal/disk"
)

// MarkerName is the file that says that a directory is minik8s's.
const MarkerName = "minik8s.json"

// LockName is the file that a running daemon holds.
const LockName = "minik8sd.lock"

// made are the names of the files and directories that the daemon creates in its directory.
var made = []string{MarkerName, LockName, "admin.kubeconfig", "api.sock", "bin", "checkpoints", "containerd", "etcd", "kubelet.kubeconfig", "masters.json", "network.json", "pki", "pods", "pods-logs",
	"functions", "gpu", "registry", "reserve", "run", "snapshots"}

// given are the names of directories in which people put files for the daemon to use.
var given = []string{"images"}

// lostAndFound is in every root of an ext file system.
const lostAndFound = "lost+found"

// Marker is what Mark writes down.
type Marker struct {
	About string `json:"about"`
	// Made says that the daemon created the directory.
	Made bool `json:"made"`
	// Path is the directory's name at the daemon's last start; command lines of running programs contain it.
	Path string `json:"path"`
	// Cgroups are the roots of the cgroups in which its pods have run.
	Cgroups []string `json:"cgroups,omitempty"`
}

// Dir is a data directory.
type Dir struct {
	Path string // absolute, as configured
	Real string // without symbolic links
	// Marker is zero if there is none yet.
	Marker Marker
}

// Open creates or opens a data directory. It writes no marker yet. The error says why path cannot be one: other files
// are in it, or another user owns it.
func Open(path string) (*Dir, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	_, err = os.Stat(abs)
	fresh := errors.Is(err, fs.ErrNotExist)
	if fresh {
		if err := disk.Private(abs, 0o700); err != nil {
			return nil, err
		}
	}
	d, err := Look(abs)
	if err != nil {
		return nil, err
	}
	c, err := d.Contents()
	if err != nil {
		return nil, err
	}
	if len(c.Foreign) > 0 && !c.Ours {
		return nil, fmt.Errorf("%s is not empty and not a data directory of minik8s: there is %s; choose another with --data-dir", d.Real, some(c.Foreign))
	}
	if err := d.checkOwner(); err != nil {
		return nil, err
	}
	if fresh {
		d.Marker.Made = true
	}
	return d, disk.Private(d.Real, 0o700)
}

// Look opens a data directory without changing anything. The error is fs.ErrNotExist if there is none.
func Look(path string) (*Dir, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	real, err := filepath.EvalSymlinks(abs)
	if err != nil {
		return nil, err
	}
	d := &Dir{Path: abs, Real: real}
	data, err := os.ReadFile(filepath.Join(real, MarkerName))
	if errors.Is(err, fs.ErrNotExist) {
		return d, nil
	}
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(data, &d.Marker); err != nil {
		return nil, fmt.Errorf("%s is damaged: %w; if the directory is minik8s's, remove that file, and it is known by what it holds", filepath.Join(real, MarkerName), err)
	}
	return d, nil
}

// checkOwner refuses a directory that another user could change.
func (d *Dir) checkOwner() error {
	info, err := os.Stat(d.Real)
	if err != nil {
		return err
	}
	if st, ok := info.Sys().(*syscall.Stat_t); ok && int(st.Uid) != os.Geteuid() {
		return fmt.Errorf("%s belongs to the user with id %d, who could read and change all that is in it: choose another with --data-dir, or chown it to the user with id %d",
			d.Real, st.Uid, os.Geteuid())
	}
	return nil
}

// Mark writes or updates the marker. cgroup is the root of the pods' cgroups; empty: there are none.
func (d *Dir) Mark(cgroup string) error {
	m := d.Marker
	m.About = `the state of a minik8sd; "minik8sd clean" removes it`
	m.Path = d.Path
	if cgroup != "" && !slices.Contains(m.Cgroups, cgroup) {
		m.Cgroups = append(slices.Clone(m.Cgroups), cgroup)
	}
	data, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return err
	}
	data = append(data, '\n')
	path := filepath.Join(d.Real, MarkerName)
	if have, err := os.ReadFile(path); err == nil && string(have) == string(data) {
		return nil
	}
	if err := disk.WriteFile(path, data, 0o600); err != nil {
		return fmt.Errorf("the data directory: %w", err)
	}
	d.Marker = m
	return nil
}

// Contents is what a directory holds, by names in it.
type Contents struct {
	// Ours: it is a data directory, by its marker or by its files.
	Ours                 bool
	Made, Given, Foreign []string
}

// Contents lists what is in the directory now.
func (d *Dir) Contents() (Contents, error) {
	entries, err := os.ReadDir(d.Real)
	if err != nil {
		return Contents{}, err
	}
	c := Contents{Ours: d.Marker.About != ""}
	for _, e := range entries {
		switch name := e.Name(); {
		case slices.Contains(made, name), strings.HasPrefix(name, ".new-") || strings.HasPrefix(name, ".tmp-"):
			c.Made = append(c.Made, name)
		case slices.Contains(given, name):
			c.Given = append(c.Given, name)
		case name == lostAndFound:
		default:
			c.Foreign = append(c.Foreign, name)
		}
	}
	if !c.Ours {
		// No marker: an earlier version made it, or a first start was interrupted. Names like bin and images alone
		// prove nothing.
		c.Ours = slices.Contains(c.Made, LockName) && (len(c.Foreign) == 0 || slices.Contains(c.Made, "pki") && slices.Contains(c.Made, "etcd"))
		if !c.Ours {
			// An empty directory with one of the daemon's names is accepted: a disk may be mounted there.
			c.Foreign = append(c.Foreign, slices.DeleteFunc(c.Made, func(name string) bool { return empty(filepath.Join(d.Real, name)) })...)
			c.Made = nil
		}
	}
	return c, nil
}

// empty reports whether nothing is in a directory.
func empty(dir string) bool {
	entries, err := os.ReadDir(dir)
	return err == nil && (len(entries) == 0 || len(entries) == 1 && entries[0].Name() == lostAndFound)
}

// some joins the first few names.
func some(names []string) string {
	slices.Sort(names)
	if len(names) > 5 {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:5], ", "), len(names)-5)
	}
	return strings.Join(names, ", ")
}

// Refusal is the error that says why a directory must not be removed; nil if it may be.
func (d *Dir) Refusal(c Contents) error {
	switch {
	case d.Real == "/":
		return errors.New("/ is no data directory of minik8s")
	case !c.Ours && len(c.Foreign) == 0:
		return nil // there is nothing to remove
	case !c.Ours:
		return fmt.Errorf("%s is not a data directory of minik8s: it has no %s, and there is %s; nothing was removed", d.Real, MarkerName,
			some(c.Foreign))
	case len(c.Foreign) > 0:
		return fmt.Errorf("in %s is what minik8s did not put there: %s; move it away, then clean again; nothing was removed", d.Real, some(c.Foreign))
	}
	return nil
}
