package gpujob

import (
	"archive/tar"
	"context"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"path/filepath"

	apimeta "k8s.io/apimachinery/pkg/api/meta"

	"minik8s/internal/api"
	"minik8s/internal/api/minik8s"
	"minik8s/internal/client"
	"minik8s/internal/ctl/brief"
	"minik8s/internal/ctl/exit"
	"minik8s/internal/ctl/session"
)

// path is that of a job's subresource.
func path(j *minik8s.GpuJob, sub string) string {
	return "/apis/minik8s.io/v1/namespaces/" + url.PathEscape(j.Namespace) + "/gpujobs/" + url.PathEscape(j.Name) + "/" + sub
}

// Sources uploads the folder or file that a job names, if it waits for that. Where this machine has no such file it says how to
// upload another.
func Sources(ctx context.Context, s *session.Session, j *minik8s.GpuJob) error {
	if j.Status.JobID != "" || apimeta.IsStatusConditionTrue(j.Status.Conditions, minik8s.GpuJobSourcesReady) {
		return nil
	}
	from := j.Spec.Sources.Folder
	if from == "" {
		from = j.Spec.Sources.File
	}
	if from == "" {
		return nil
	}
	if _, err := os.Stat(from); err != nil {
		s.Note("%s waits for its sources: %s is not on this machine. Send them with: minik8sd ctl gpu push %s%s FOLDER", brief.Ref(api.GpuJobs, j.Name), from, j.Name, brief.Namespace(j.Namespace))
		return nil
	}
	return Push(ctx, s, j, from)
}

// Push uploads a folder's content, or a file, as a job's sources.
func Push(ctx context.Context, s *session.Session, j *minik8s.GpuJob, from string) error {
	info, err := os.Stat(from)
	if err != nil {
		return exit.Failf(exit.Failed, "%v", err)
	}
	body, to := io.Pipe()
	go func() {
		w := tar.NewWriter(to)
		var err error
		if info.IsDir() {
			err = w.AddFS(noSpecials{os.DirFS(from), from})
		} else {
			err = addFile(w, from)
		}
		if err == nil {
			err = w.Close()
		}
		to.CloseWithError(err) //nolint:errcheck // it always returns nil
	}()
	resp, err := s.API.Do(ctx, http.MethodPut, path(j, minik8s.GpuJobSourcesSubresource), nil, "application/x-tar", body)
	body.CloseWithError(errors.New("the server has answered")) //nolint:errcheck // as above
	if err != nil {
		return err
	}
	defer resp.Body.Close() //nolint:errcheck // it was only read
	var got struct{ Files, Bytes int64 }
	if err := json.NewDecoder(resp.Body).Decode(&got); err != nil {
		return err
	}
	s.Say("%s: %d files (%d bytes) uploaded", brief.Ref(api.GpuJobs, j.Name), got.Files, got.Bytes)
	return nil
}

// noSpecials is a folder without what no tar can take along: sockets, pipes, devices.
type noSpecials struct {
	fs.FS
	dir string
}

// ReadDir leaves them out.
func (n noSpecials) ReadDir(name string) ([]fs.DirEntry, error) {
	entries, err := fs.ReadDir(n.FS, name)
	var out []fs.DirEntry
	for _, e := range entries {
		if t := e.Type(); t.IsRegular() || t.IsDir() || t == fs.ModeSymlink {
			out = append(out, e)
		}
	}
	return out, err
}

// ReadLink and Lstat have links be links.
func (n noSpecials) ReadLink(name string) (string, error) {
	return os.Readlink(filepath.Join(n.dir, filepath.FromSlash(name)))
}

// Lstat is as for ReadLink.
func (n noSpecials) Lstat(name string) (fs.FileInfo, error) {
	return os.Lstat(filepath.Join(n.dir, filepath.FromSlash(name)))
}

func addFile(w *tar.Writer, from string) error {
	f, err := os.Open(from)
	if err != nil {
		return err
	}
	defer f.Close() //nolint:errcheck // it was only read
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if err := w.WriteHeader(&tar.Header{Name: filepath.Base(from), Mode: int64(info.Mode().Perm()), Size: info.Size(), Typeflag: tar.TypeReg}); err != nil {
		return err
	}
	_, err = io.CopyN(w, f, info.Size())
	return err
}

// current reads a job anew.
func current(ctx context.Context, s *session.Session, j *minik8s.GpuJob) (*minik8s.GpuJob, error) {
	return client.Get[*minik8s.GpuJob](ctx, s.API, client.Key{Kind: api.GpuJobs, Namespace: j.Namespace, Name: j.Name})
}
