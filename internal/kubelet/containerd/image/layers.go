package image

import (
	"bufio"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/containerd/containerd/snapshots"
	"golang.org/x/sys/unix"

	"minik8s/internal/kubelet/containerd/embed"
)

// File reads a small file of an image from its layers, the topmost first; empty if it does not exist. ctx is from
// Containerd.Context. os.Root prevents symbolic links of the image from leading out of the layer.
func (s *Store) File(ctx context.Context, img *Image, name string) (string, error) {
	if v, ok := img.files.Load(name); ok {
		return v.(string), nil
	}
	layers, err := s.layerDirs(ctx, img)
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

// readInLayer reads a file of one layer; found is also true if the layer deletes the file.
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

// ViewPrefix is the prefix of the names of temporary snapshots, made to find the directories of layers; a leftover
// can be removed.
const ViewPrefix = "minik8s-view-"

// layerDirs are the directories of an image's layers, topmost first. They are read from the overlay snapshotter's
// mount options.
func (s *Store) layerDirs(ctx context.Context, img *Image) ([]string, error) {
	key := ViewPrefix + rand.Text()
	sn := s.client.SnapshotService(s.snapshotter)
	mounts, err := sn.View(ctx, key, img.ChainID, snapshots.WithLabels(map[string]string{embed.GCRoot: "1"}))
	if err != nil {
		return nil, fmt.Errorf("containerd: layers: %w", err)
	}
	if err := sn.Remove(context.WithoutCancel(ctx), key); err != nil { // also if ctx has just ended
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
