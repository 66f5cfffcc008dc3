package gpu

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"minik8s/internal/aggregation"
	"minik8s/internal/api/minik8s"
)

// Asker asks another master's API, as one who may read everything. An answer of 400 or more is an error.
type Asker interface {
	Do(ctx context.Context, method, path string, query url.Values, contentType string, body io.Reader) (*http.Response, error)
	Close()
}

// forwardedBy is a parameter of a request that another master has passed on: it is not passed on once more.
const forwardedBy = "forwardedBy"

// forJob has the master answer that has what a job's files are: the one with the results, or else the one with the connections.
// It returns false if that is this one.
func (s *Server) forJob(w http.ResponseWriter, r *aggregation.Connected, j *minik8s.GpuJob) (bool, error) {
	if !collected(j) {
		return s.forCluster(w, r)
	}
	done, err := s.forwarded(w, r, j.Status.Results.Master)
	if away := (*awayError)(nil); j.Status.Folder != "" && errors.As(err, &away) { // they still lie on the cluster, too
		return s.forCluster(w, r)
	}
	return done, err
}

// awayError is a master that cannot be asked: 503.
type awayError struct {
	master string
	err    error
}

func (e *awayError) Error() string {
	return fmt.Sprintf("master %s, which would answer, cannot be asked: %v", e.master, e.err)
}

// Status implements apierrors.APIStatus.
func (e *awayError) Status() metav1.Status {
	return apierrors.NewServiceUnavailable(e.Error()).Status()
}

// forCluster has the leading master answer, which has the connections: a centre is logged in to once, and a person who has done so
// need not do it for every master. It returns false if that is this one, or unknown.
func (s *Server) forCluster(w http.ResponseWriter, r *aggregation.Connected) (bool, error) {
	if s.leader == nil {
		return false, nil
	}
	name, err := s.leader(r.Context())
	if err != nil {
		return true, err
	}
	return s.forwarded(w, r, name)
}

// forwarded has another master answer; false if it is this one. The request has been authorised here.
func (s *Server) forwarded(w http.ResponseWriter, r *aggregation.Connected, master string) (bool, error) {
	if master == "" || master == s.master || s.others == nil || r.Query.Get(forwardedBy) != "" {
		return false, nil
	}
	other, err := s.others(r.Context(), master)
	if err != nil {
		return true, &awayError{master, err}
	}
	defer other.Close()
	query := url.Values{forwardedBy: {s.master}}
	for k, v := range r.Query {
		query[k] = v
	}
	var body io.Reader
	if r.Method != http.MethodGet {
		body = newPatientBody(r.Body, w)
	}
	resp, err := other.Do(r.Context(), r.Method, r.URL.EscapedPath(), query, r.Header.Get("Content-Type"), body)
	if status := apierrors.APIStatus(nil); err != nil && !errors.As(err, &status) {
		err = &awayError{master, err}
	}
	if err != nil {
		return true, err
	}
	defer resp.Body.Close() //nolint:errcheck // it was only read
	for _, name := range []string{"Content-Type", "Content-Length", "Content-Range", "X-Content-Type-Options"} {
		if v := resp.Header.Get(name); v != "" {
			w.Header().Set(name, v)
		}
	}
	w.WriteHeader(resp.StatusCode)
	if _, err := io.Copy(w, resp.Body); err != nil {
		panic(http.ErrAbortHandler) // a clean end would make what was sent look like all
	}
	return true, nil
}
