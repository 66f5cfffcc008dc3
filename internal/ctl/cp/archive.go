package cp

import (
	"archive/tar"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
)

// pack writes a file, or a directory with everything in it, as an archive in which it has the given name.
func pack(w io.Writer, from, name string) error {
	tw := tar.NewWriter(w)
	err := filepath.WalkDir(from, func(file string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		st, err := d.Info()
		if err != nil {
			return err
		}
		link := ""
		switch {
		case st.Mode()&fs.ModeSymlink != 0:
			if link, err = os.Readlink(file); err != nil {
				return err
			}
		case !st.IsDir() && !st.Mode().IsRegular():
			return nil // sockets and the like cannot be copied
		}
		h, err := tar.FileInfoHeader(st, link)
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(from, file)
		if err != nil {
			return err
		}
		h.Name = path.Join(name, filepath.ToSlash(rel))
		h.Uid, h.Gid, h.Uname, h.Gname = 0, 0, "", "" // this machine's users mean nothing in the container
		if err := tw.WriteHeader(h); err != nil || !st.Mode().IsRegular() {
			return err
		}
		f, err := os.Open(file)
		if err != nil {
			return err
		}
		defer f.Close()
		_, err = io.Copy(tw, f)
		return err
	})
	return errors.Join(err, tw.Close())
}

// unpack writes what an archive has under name to the path to. It never writes outside of that path, because an archive
// from a container cannot be trusted. Links are skipped, with a note.
func unpack(r io.Reader, name, to string, note func(string, ...any)) error {
	root, err := os.OpenRoot(filepath.Dir(to))
	if err != nil {
		return err
	}
	defer root.Close()
	base := filepath.Base(to)
	tr := tar.NewReader(r)
	for {
		h, err := tr.Next()
		if errors.Is(err, io.EOF) {
			_, err = io.Copy(io.Discard, r) // the padding
			return err
		}
		if err != nil {
			return err
		}
		rest, ok := strings.CutPrefix(path.Clean(h.Name), name)
		if !ok || rest != "" && rest[0] != '/' {
			return fmt.Errorf("the container's archive has %q in it, which was not asked for", h.Name)
		}
		file := filepath.FromSlash(base + rest)
		switch h.Typeflag {
		case tar.TypeDir:
			err = root.MkdirAll(file, 0o755)
		case tar.TypeReg:
			err = unpackFile(root, file, h, tr)
		default:
			note("left out, because it is no file: %s", h.Name)
		}
		if err != nil {
			return err
		}
	}
}

func unpackFile(root *os.Root, file string, h *tar.Header, from io.Reader) error {
	f, err := root.OpenFile(file, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, fs.FileMode(h.Mode)&0o777|0o200)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, from)
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	return root.Chtimes(file, h.ModTime, h.ModTime)
}
