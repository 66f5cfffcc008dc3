package gpujob

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	gopath "path"
	"slices"
	"strings"

	"minik8s/internal/api/minik8s"
	"minik8s/internal/ctl/console"
	"minik8s/internal/ctl/exit"
	"minik8s/internal/ctl/session"
)

// file is one in the server's list.
type file struct {
	Path   string `json:"path"`
	Size   int64  `json:"size"`
	SHA256 string `json:"sha256"`
}

func files(ctx context.Context, s *session.Session, j *minik8s.GpuJob) ([]file, error) {
	resp, err := s.API.Do(ctx, http.MethodGet, path(j, minik8s.GpuJobFilesSubresource), nil, "", nil)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close() //nolint:errcheck // it was only read
	var list struct{ Files []file }
	err = json.NewDecoder(resp.Body).Decode(&list)
	return list.Files, err
}

// List prints what lies in a folder of a job's files, folders in blue.
func List(ctx context.Context, s *session.Session, j *minik8s.GpuJob, folder string) error {
	all, err := files(ctx, s, j)
	if err != nil {
		return err
	}
	below := strings.TrimPrefix(gopath.Clean("/"+folder)+"/", "/")
	if below == "/" {
		below = ""
	}
	sizes := map[string]int64{}
	for _, f := range all {
		rest, ok := strings.CutPrefix(f.Path, below)
		if !ok {
			continue
		}
		name, _, isFolder := strings.Cut(rest, "/")
		if isFolder {
			name += "/"
		}
		sizes[name] += f.Size
	}
	if len(sizes) == 0 {
		if below != "" {
			return exit.Failf(exit.NotFound, "%s has no folder %s", j.Name, console.Name(strings.TrimSuffix(below, "/")))
		}
		s.Note("there are no files yet")
		return nil
	}
	var names []string
	for n := range sizes {
		names = append(names, n)
	}
	slices.Sort(names)
	for _, n := range names {
		size := fmt.Sprintf("%12d  ", sizes[n])
		shown := console.Name(n)
		if strings.HasSuffix(n, "/") {
			shown = s.Paint(console.Blue, shown)
		}
		s.Say("%s%s", size, shown)
	}
	return nil
}

// Fetch downloads one file of a job into a folder of this machine, under its base name.
func Fetch(ctx context.Context, s *session.Session, j *minik8s.GpuJob, name, to string) error {
	name = strings.TrimPrefix(gopath.Clean("/"+name), "/")
	all, err := files(ctx, s, j)
	if err != nil {
		return err
	}
	i := slices.IndexFunc(all, func(f file) bool { return f.Path == name })
	if i < 0 {
		return exit.Failf(exit.NotFound, "%s has no file %s: `minik8sd ctl gpu %s` lists them", j.Name, console.Name(name), j.Name)
	}
	root, err := folder(to)
	if err != nil {
		return err
	}
	defer root.Close() //nolint:errcheck // the file was closed
	if err := download(ctx, s, j, all[i], root, gopath.Base(name)); err != nil {
		return err
	}
	s.Say("%s: %d bytes", console.Name(gopath.Join(to, gopath.Base(name))), all[i].Size)
	return nil
}

// FetchAll downloads all files of a job, as they lie there.
func FetchAll(ctx context.Context, s *session.Session, j *minik8s.GpuJob, to string) error {
	all, err := files(ctx, s, j)
	if err != nil {
		return err
	}
	root, err := folder(to)
	if err != nil {
		return err
	}
	defer root.Close() //nolint:errcheck // the files were closed
	for _, f := range all {
		if err := download(ctx, s, j, f, root, f.Path); err != nil {
			return err
		}
		s.Say("%s: %d bytes", console.Name(gopath.Join(to, f.Path)), f.Size)
	}
	return nil
}

func folder(to string) (*os.Root, error) {
	if err := os.MkdirAll(to, 0o755); err != nil {
		return nil, exit.Failf(exit.Failed, "%v", err)
	}
	return os.OpenRoot(to)
}

// download copies a file, from where an earlier download broke, and puts it in its place when it is whole.
func download(ctx context.Context, s *session.Session, j *minik8s.GpuJob, f file, root *os.Root, as string) (err error) {
	defer func() { err = printable(err) }()
	if !fs.ValidPath(as) {
		return exit.Failf(exit.Failed, "the server has a file %q, which cannot be here", as)
	}
	if err := root.MkdirAll(gopath.Dir(as), 0o755); err != nil {
		return err
	}
	part := as + ".part"
	out, err := root.OpenFile(part, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return err
	}
	defer out.Close() //nolint:errcheck // closed below where it matters
	sum := sha256.New()
	have, err := io.Copy(sum, out)
	if err != nil {
		return err
	}
	if have > f.Size || f.SHA256 == "" { // what is there is of another file, or may be
		have = 0
		sum.Reset()
		if err := out.Truncate(0); err != nil {
			return err
		}
		if _, err := out.Seek(0, io.SeekStart); err != nil {
			return err
		}
	}
	if have < f.Size || f.Size == 0 {
		n, err := get(ctx, s, j, f.Path, have, io.MultiWriter(out, sum))
		if err != nil {
			return err
		}
		have += n
	}
	if f.SHA256 != "" && (have != f.Size || hex.EncodeToString(sum.Sum(nil)) != f.SHA256) {
		root.Remove(part) //nolint:errcheck // the next download overwrites it
		return exit.Failf(exit.Failed, "%s came back damaged: fetch it again", console.Name(f.Path))
	}
	if err := out.Close(); err != nil {
		return err
	}
	return root.Rename(part, as)
}

// printable is an error of this machine's file system with names that can be printed.
func printable(err error) error {
	var path *fs.PathError
	var link *os.LinkError
	switch {
	case errors.As(err, &path):
		return &fs.PathError{Op: path.Op, Path: console.Name(path.Path), Err: path.Err}
	case errors.As(err, &link):
		return &os.LinkError{Op: link.Op, Old: console.Name(link.Old), New: console.Name(link.New), Err: link.Err}
	}
	return err
}

// get reads a file from an offset.
func get(ctx context.Context, s *session.Session, j *minik8s.GpuJob, name string, from int64, to io.Writer) (int64, error) {
	words := strings.Split(name, "/")
	for i := range words {
		words[i] = url.PathEscape(words[i])
	}
	query := url.Values{}
	if from > 0 {
		query.Set("offset", fmt.Sprint(from))
	}
	resp, err := s.API.Do(ctx, http.MethodGet, path(j, minik8s.GpuJobFilesSubresource)+"/"+strings.Join(words, "/"), query, "", nil)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close() //nolint:errcheck // it was only read
	return io.Copy(to, resp.Body)
}

// Logs prints what a job prints.
func Logs(ctx context.Context, s *session.Session, j *minik8s.GpuJob, query url.Values) error {
	resp, err := s.API.Do(ctx, http.MethodGet, path(j, minik8s.GpuJobLogSubresource), query, "", nil)
	if err != nil {
		return err
	}
	defer resp.Body.Close() //nolint:errcheck // it was only read
	_, err = io.Copy(s.Out, resp.Body)
	return err
}
