package gpu

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"minik8s/internal/aggregation"
	"minik8s/internal/api"
	"minik8s/internal/api/minik8s"
	"minik8s/internal/client"
	"minik8s/internal/gpu/plan"
)

// logEvery is the time between two looks for more of a log that is followed.
const logEvery = 500 * time.Millisecond

// logs serves what a job prints: what compiling printed, its output and its errors. Parameters: follow=true; stream=All
// (the default), Compile, Stdout or Stderr; task=N of an array; tailLines=N of each.
func (s *Server) logs(w http.ResponseWriter, r *aggregation.Connected) error {
	j := r.Object.(*minik8s.GpuJob)
	if done, err := s.forJob(w, r, j); done {
		return err
	}
	names, err := logFiles(j, r.Query.Get("stream"), r.Query.Get("task"))
	if err != nil {
		return err
	}
	tail := int64(-1)
	if v := r.Query.Get("tailLines"); v != "" {
		if tail, err = strconv.ParseInt(v, 10, 64); err != nil || tail < 0 {
			return apierrors.NewBadRequest(fmt.Sprintf("tailLines: %q: expected a number of lines", v))
		}
	}
	follow := r.Query.Get("follow") == "true" || r.Query.Get("follow") == "1"
	if !follow {
		if _, err := s.here(j); err != nil {
			return err
		}
	}
	opened := false
	open := func() error { // shows the client that the log is there, even if it is still empty
		if opened {
			return nil
		}
		opened = true
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		w.WriteHeader(http.StatusOK)
		_, err := w.Write(nil)
		return err
	}
	at := make([]int64, len(names))
	for i := range at {
		at[i] = -1
	}
	for {
		ended := plan.Ended(&j.Status)
		for i, name := range names {
			at[i], err = s.more(r.Context(), j, name, at[i], tail, func() (io.Writer, error) { return w, open() })
			if errors.Is(err, fs.ErrNotExist) {
				continue
			}
			if err != nil && (!follow || ended) {
				if !opened {
					return unavailable(err)
				}
				panic(http.ErrAbortHandler) // a clean end would make what was sent look like the whole log
			}
		}
		if !follow || ended {
			return open()
		}
		if err := open(); err != nil {
			return nil //nolint:nilerr // the client has disconnected
		}
		select {
		case <-r.Context().Done():
			return nil
		case <-time.After(logEvery):
		}
		now, err := client.Get[*minik8s.GpuJob](r.Context(), s.client, client.Key{Kind: api.GpuJobs, Namespace: j.Namespace, Name: j.Name})
		if apierrors.IsNotFound(err) || err == nil && now.UID != j.UID {
			return nil
		}
		if err == nil {
			j = now
		}
	}
}

// logFiles are the files of a stream. The error is 400.
func logFiles(j *minik8s.GpuJob, stream, task string) ([]string, error) {
	names := map[string][]string{"": {plan.CompileFile(j), plan.OutputFile(j), plan.ErrorFile(j)},
		"Compile": {plan.CompileFile(j)}, "Stdout": {plan.OutputFile(j)}, "Stderr": {plan.ErrorFile(j)}}
	names["All"] = names[""]
	out, ok := names[stream]
	if !ok {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("stream: %q: expected All, Compile, Stdout or Stderr", stream))
	}
	out = slices.Compact(slices.Clone(out)) // output and errors may be one file
	switch {
	case j.Spec.Array == "" && task != "":
		return nil, apierrors.NewBadRequest("task: the job is no array")
	case j.Spec.Array != "" && task == "" && stream != "Compile":
		return nil, apierrors.NewBadRequest("task: the job is an array: say which task, as in task=0")
	case task != "":
		if n, err := strconv.Atoi(task); err != nil || n < 0 {
			return nil, apierrors.NewBadRequest(fmt.Sprintf("task: %q: expected a number", task))
		}
		for i, name := range out {
			if name != plan.CompileFile(j) {
				out[i] = name + "." + task
			}
		}
	}
	return out, nil
}

// more writes what a file has after an offset, and returns the new offset. An offset of -1 is the beginning, or that of the last
// lines.
func (s *Server) more(ctx context.Context, j *minik8s.GpuJob, name string, at, tail int64, to func() (io.Writer, error)) (int64, error) {
	f, err := s.opened(ctx, j, name)
	if err != nil {
		return at, err
	}
	defer f.Close() //nolint:errcheck // it was only read
	if at < 0 {
		at = 0
		if tail >= 0 {
			if at, err = lastLines(f, tail); err != nil {
				return -1, err
			}
		}
	}
	if _, err := f.Seek(at, io.SeekStart); err != nil {
		return at, err
	}
	w, err := to()
	if err != nil {
		return at, err
	}
	n, err := io.Copy(w, f)
	return at + n, err
}

// opened opens a file of a job, here or on its cluster.
func (s *Server) opened(ctx context.Context, j *minik8s.GpuJob, name string) (io.ReadSeekCloser, error) {
	here, err := s.here(j)
	if err != nil {
		return nil, err
	}
	if here {
		return s.store.Open(string(j.UID), name)
	}
	c, layout, err := s.cluster(ctx, j)
	if apierrors.IsNotFound(err) {
		return nil, fs.ErrNotExist
	}
	if err != nil {
		return nil, err
	}
	f, _, err := c.Read(ctx, layout, name)
	if err != nil {
		return nil, err
	}
	return f, nil
}

// lastLines is where the last lines of a file begin.
func lastLines(f io.ReadSeeker, lines int64) (int64, error) {
	end, err := f.Seek(0, io.SeekEnd)
	if err != nil || lines == 0 {
		return end, err
	}
	const piece = 32 << 10
	buf := make([]byte, piece)
	seen := int64(0)
	for at := end; at > 0; {
		n := min(piece, at)
		at -= n
		if _, err := f.Seek(at, io.SeekStart); err != nil {
			return 0, err
		}
		if _, err := io.ReadFull(f, buf[:n]); err != nil {
			return 0, err
		}
		text := string(buf[:n])
		if at+n == end {
			text = strings.TrimSuffix(text, "\n")
		}
		for i := len(text) - 1; i >= 0; i-- {
			if text[i] == '\n' {
				if seen++; seen == lines {
					return at + int64(i) + 1, nil
				}
			}
		}
	}
	return 0, nil
}
