package gpu

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"

	"minik8s/internal/aggregation"
	"minik8s/internal/api"
	"minik8s/internal/api/minik8s"
	"minik8s/internal/client"
	"minik8s/internal/gpu/plan"
	"minik8s/internal/gpu/results"
	"minik8s/internal/slurm"
	"minik8s/internal/slurm/batch"
)

// Server answers the subresources of GpuJobs, and login of SlurmClusters.
type Server struct {
	client client.Interface
	links  *Links
	store  *results.Store
	master string
	leader func(ctx context.Context) (string, error)
	others func(ctx context.Context, master string) (Asker, error)
	log    *slog.Logger
	logins logins
}

// NewServer makes a server; c has the part's rights.
func NewServer(c client.Interface, cfg Config) *Server {
	return &Server{client: c, links: cfg.Links, store: cfg.Store, master: cfg.Master, leader: cfg.Leader, others: cfg.Others, log: cfg.Log}
}

// Connectors are the subresources, for the API server.
func (s *Server) Connectors() map[string]aggregation.Connector {
	of := func(sub string) string { return api.GpuJobs.Plural + "/" + sub }
	return map[string]aggregation.Connector{
		of(minik8s.GpuJobFilesSubresource):                             s.files,
		of(minik8s.GpuJobLogSubresource):                               s.logs,
		of(minik8s.GpuJobScriptSubresource):                            s.script,
		of(minik8s.GpuJobSourcesSubresource):                           s.upload,
		api.SlurmClusters.Plural + "/" + minik8s.SlurmLoginSubresource: s.login,
	}
}

// FileList is the answer of files: what came back or, before that, what lies on the cluster.
type FileList struct {
	// Source is results, or cluster: the files of a job that is not over may still change.
	Source string         `json:"source"`
	Files  []results.File `json:"files"` // those on the cluster have no checksum
}

// collected reports whether a job's files have come back.
func collected(j *minik8s.GpuJob) bool {
	return apimeta.IsStatusConditionTrue(j.Status.Conditions, minik8s.GpuJobResultsReady) && j.Status.Results != nil
}

// here reports whether this master has the results of a job. The error is 503 if they are nowhere else, and not here either.
func (s *Server) here(j *minik8s.GpuJob) (bool, error) {
	if !collected(j) {
		return false, nil
	}
	_, err := s.store.List(string(j.UID))
	switch {
	case err == nil:
		return true, nil
	case !errors.Is(err, fs.ErrNotExist):
		return false, err
	case j.Status.Folder != "": // still on the cluster
		return false, nil
	}
	return false, apierrors.NewServiceUnavailable(fmt.Sprintf("the results were on the disk of master %s, and are not there", j.Status.Results.Master))
}

// cluster is where a job lies. The errors are 404 before it is put anywhere, and 503 if the cluster cannot be reached.
func (s *Server) cluster(ctx context.Context, j *minik8s.GpuJob) (*slurm.Cluster, batch.Layout, error) {
	layout, ok := plan.Layout(j)
	if !ok {
		return nil, layout, apierrors.NewNotFound(api.GpuJobs.GR(), j.Name+": it has no files yet")
	}
	c, _, err := s.links.For(ctx, placeOf(j))
	if err == nil {
		err = c.Open(ctx)
	}
	if err == nil {
		return c, layout, nil
	}
	err = unavailable(err)
	if collected(j) {
		err = apierrors.NewServiceUnavailable(fmt.Sprintf("master %s, which fetched the results, does not have them any more or cannot be asked; where the job ran: %v", j.Status.Results.Master, err))
	}
	return nil, layout, err
}

// unavailable is 503 with what is wrong with the connection; a Status stays as it is.
func unavailable(err error) error {
	if status := apierrors.APIStatus(nil); errors.As(err, &status) {
		return err
	}
	return apierrors.NewServiceUnavailable(problem(err).Message)
}

// files serves the list, and single files.
func (s *Server) files(w http.ResponseWriter, r *aggregation.Connected) error {
	j := r.Object.(*minik8s.GpuJob)
	if done, err := s.forJob(w, r, j); done {
		return err
	}
	here, err := s.here(j)
	if err != nil {
		return err
	}
	name := strings.Trim(r.Path, "/")
	if name != "" && !fs.ValidPath(name) {
		return apierrors.NewBadRequest(fmt.Sprintf("%q: expected a path below the job's files", name))
	}
	if name == "" {
		list, err := s.list(r.Context(), j, here)
		if err != nil {
			return err
		}
		w.Header().Set("Content-Type", "application/json")
		return json.NewEncoder(w).Encode(list)
	}
	if from := r.Query.Get("offset"); from != "" { // for clients that cannot set headers
		n, err := strconv.ParseInt(from, 10, 64)
		if err != nil || n < 0 {
			return apierrors.NewBadRequest(fmt.Sprintf("offset: %q: expected a number of bytes", from))
		}
		r.Header.Set("Range", fmt.Sprintf("bytes=%d-", n))
	}
	missing := apierrors.NewNotFound(api.GpuJobs.GR(), j.Name+"/files/"+name)
	w.Header().Set("Content-Type", "application/octet-stream")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	if here {
		f, err := s.store.Open(string(j.UID), name)
		if errors.Is(err, fs.ErrNotExist) {
			return missing
		}
		if err != nil {
			return err
		}
		defer f.Close() //nolint:errcheck // it was only read
		if info, err := f.Stat(); err != nil || info.IsDir() {
			return missing
		}
		http.ServeContent(w, r.Request, "", time.Time{}, f)
		return nil
	}
	c, layout, err := s.cluster(r.Context(), j)
	if err != nil {
		return err
	}
	defer s.links.hold(placeOf(j))()
	f, _, err := c.Read(r.Context(), layout, name)
	if errors.Is(err, fs.ErrNotExist) {
		return missing
	}
	if err != nil {
		return unavailable(err)
	}
	defer f.Close() //nolint:errcheck // it was only read
	http.ServeContent(w, r.Request, "", time.Time{}, f)
	return nil
}

func (s *Server) list(ctx context.Context, j *minik8s.GpuJob, here bool) (*FileList, error) {
	if here {
		files, err := s.store.List(string(j.UID))
		return &FileList{Source: "results", Files: files}, err
	}
	c, layout, err := s.cluster(ctx, j)
	if err != nil {
		return nil, err
	}
	entries, err := c.List(ctx, layout)
	if err != nil {
		return nil, unavailable(err)
	}
	out := &FileList{Source: "cluster", Files: []results.File{}}
	for _, e := range entries {
		if !e.Folder {
			out.Files = append(out.Files, results.File{Path: e.Path, Size: e.Size})
		}
	}
	return out, nil
}

// script serves the scripts and options of a job, as they are or will be on the cluster.
func (s *Server) script(w http.ResponseWriter, r *aggregation.Connected) error {
	j := r.Object.(*minik8s.GpuJob)
	var spec minik8s.SlurmClusterSpec
	name, err := s.links.choose(r.Context(), j)
	if err == nil {
		obj, err := client.Get[*minik8s.SlurmCluster](r.Context(), s.client, client.Key{Kind: api.SlurmClusters, Namespace: j.Namespace, Name: name})
		if err != nil && !apierrors.IsNotFound(err) {
			return err
		}
		if err == nil {
			spec = obj.Spec
		}
	}
	text, err := plan.Text(j, &spec)
	if err != nil {
		return apierrors.NewBadRequest(err.Error())
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	_, err = io.WriteString(w, text)
	return err
}
