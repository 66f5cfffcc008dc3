package containerd

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/containerd/containerd/snapshots"
	"golang.org/x/sys/unix"

	"minik8s/internal/kubelet/cri"
)

// user is who a container's process is, in numbers.
type user struct {
	uid, gid uint32
	groups   []uint32 // supplementary, without gid
}

// resolveUser decides it from the pod's security settings and the image's user, looking names up in
// the image's /etc/passwd and /etc/group.
func (r *Runtime) resolveUser(ctx context.Context, img *localImage, s cri.Security) (user, error) {
	passwd, err := r.imageFile(ctx, img, "etc/passwd")
	if err != nil {
		return user{}, err
	}
	group, err := r.imageFile(ctx, img, "etc/group")
	if err != nil {
		return user{}, err
	}
	u, err := lookupUser(img.config.User, s, passwd, group)
	if err != nil {
		return user{}, fmt.Errorf("containerd: user: %w", err)
	}
	return u, nil
}

// lookupUser is resolveUser on the two files' contents.
func lookupUser(image string, s cri.Security, passwd, group string) (user, error) {
	name, groupName, _ := strings.Cut(image, ":")
	if s.RunAsUser != nil {
		name, groupName = strconv.FormatInt(*s.RunAsUser, 10), ""
	}
	var u user
	login := ""
	uid, err := strconv.ParseUint(firstOf(name, "0"), 10, 32)
	numeric := err == nil
	found := false
	for line := range strings.Lines(passwd) {
		f := strings.Split(strings.TrimSpace(line), ":")
		if len(f) < 4 {
			continue
		}
		id, err := strconv.ParseUint(f[2], 10, 32)
		gid, gerr := strconv.ParseUint(f[3], 10, 32)
		if err != nil || gerr != nil || (numeric && id != uid) || (!numeric && f[0] != name) {
			continue
		}
		login, u.uid, u.gid, found = f[0], uint32(id), uint32(gid), true
		break
	}
	if !found {
		if !numeric {
			return u, fmt.Errorf("%q is not in the image's /etc/passwd", name)
		}
		u.uid = uint32(uid)
	}
	if groupName != "" {
		gid, err := lookupGroup(groupName, group)
		if err != nil {
			return u, err
		}
		u.gid = gid
	}
	if s.RunAsGroup != nil {
		u.gid = uint32(*s.RunAsGroup)
	}
	add := func(gid uint32) {
		if gid != u.gid && !slices.Contains(u.groups, gid) {
			u.groups = append(u.groups, gid)
		}
	}
	if login != "" && !s.StrictGroups {
		for line := range strings.Lines(group) {
			f := strings.Split(strings.TrimSpace(line), ":")
			if len(f) < 4 || !slices.Contains(strings.Split(f[3], ","), login) {
				continue
			}
			if gid, err := strconv.ParseUint(f[2], 10, 32); err == nil {
				add(uint32(gid))
			}
		}
	}
	for _, gid := range s.SupplementalGroups {
		add(uint32(gid))
	}
	return u, nil
}

func lookupGroup(name, group string) (uint32, error) {
	if gid, err := strconv.ParseUint(name, 10, 32); err == nil {
		return uint32(gid), nil
	}
	for line := range strings.Lines(group) {
		f := strings.Split(strings.TrimSpace(line), ":")
		if len(f) < 3 || f[0] != name {
			continue
		}
		if gid, err := strconv.ParseUint(f[2], 10, 32); err == nil {
			return uint32(gid), nil
		}
	}
	return 0, fmt.Errorf("group %q is not in the image's /etc/group", name)
}

// imageFile reads a small file of an image out of its layers, topmost first; empty if it is not there.
// os.Root keeps symbolic links of the image from leading out of the layer.
func (r *Runtime) imageFile(ctx context.Context, img *localImage, name string) (string, error) {
	if v, ok := img.files.Load(name); ok {
		return v.(string), nil
	}
	layers, err := r.layerDirs(ctx, img)
	if err != nil {
		return "", err
	}
	text := ""
	for _, dir := range layers {
		data, found, err := readInLayer(dir, name)
		if err != nil {
			return "", fmt.Errorf("containerd: /%s of image: %w", name, err)
		}
		if found {
			text = data
			break
		}
	}
	img.files.Store(name, text)
	return text, nil
}

// readInLayer reads a file of one layer; found is also true for one that the layer deletes.
func readInLayer(dir, name string) (text string, found bool, err error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return "", false, err
	}
	defer root.Close()
	st, err := root.Stat(name)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENOTDIR) || errors.Is(err, unix.ELOOP) {
		return "", false, nil
	}
	if err != nil {
		// A link out of the layer, or into another one.
		return "", false, nil
	}
	if !st.Mode().IsRegular() {
		return "", true, nil // a whiteout
	}
	f, err := root.Open(name)
	if err != nil {
		return "", false, err
	}
	defer f.Close()
	var b strings.Builder
	sc := bufio.NewScanner(f)
	for sc.Scan() && b.Len() < 1<<20 {
		b.WriteString(sc.Text())
		b.WriteByte('\n')
	}
	return b.String(), true, sc.Err()
}

// viewPrefix starts the names of the snapshots that layerDirs needs for a moment.
const viewPrefix = "minik8s-view-"

// layerDirs are the directories of an image's layers, topmost first. The overlay snapshotter names them
// in the mount it would make of them.
func (r *Runtime) layerDirs(ctx context.Context, img *localImage) ([]string, error) {
	key := viewPrefix + newID()[:16]
	sn := r.client.SnapshotService(r.snapshotter)
	mounts, err := sn.View(ctx, key, img.chainID, snapshots.WithLabels(map[string]string{gcRoot: "1"}))
	if err != nil {
		return nil, fmt.Errorf("containerd: layers: %w", err)
	}
	if err := sn.Remove(ctx, key); err != nil {
		return nil, fmt.Errorf("containerd: layers: %w", err)
	}
	var dirs []string
	for _, m := range mounts {
		if m.Type == "bind" {
			dirs = append(dirs, m.Source)
		}
		for _, o := range m.Options {
			if list, ok := strings.CutPrefix(o, "lowerdir="); ok {
				dirs = append(dirs, strings.Split(list, ":")...)
			}
		}
	}
	for i, d := range dirs {
		dirs[i] = filepath.Clean(d)
	}
	return dirs, nil
}
