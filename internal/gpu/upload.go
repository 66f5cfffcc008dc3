package gpu

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"path"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"minik8s/internal/aggregation"
	"minik8s/internal/api"
	"minik8s/internal/api/minik8s"
	"minik8s/internal/client"
	"minik8s/internal/clock"
	"minik8s/internal/gpu/plan"
)

const (
	// uploadStall is how long a client may send nothing.
	uploadStall = 30 * time.Second
	// uploadLimit bounds sources; data of this size belongs on the cluster beforehand.
	uploadLimit = 4 << 30
)

// upload takes a tar with a job's sources and puts it on the cluster, straight through: nothing is kept here. It may be sent again
// until the job is submitted.
func (s *Server) upload(w http.ResponseWriter, r *aggregation.Connected) error {
	j := r.Object.(*minik8s.GpuJob)
	if j.Status.JobID != "" || plan.Ended(&j.Status) {
		return apierrors.NewConflict(api.GpuJobs.GR(), j.Name, errors.New("the job has been submitted: delete it and create it again"))
	}
	if done, err := s.forCluster(w, r); done {
		return err
	}
	ctx := r.Context()
	name, err := s.links.choose(ctx, j)
	if err != nil {
		return unavailable(err)
	}
	at := place{j.Namespace, name, j.Spec.LoginSecret}
	c, _, err := s.links.For(ctx, at)
	if err != nil {
		return unavailable(err)
	}
	defer s.links.hold(at)()
	layout, err := c.Layout(ctx, j.Name, string(j.UID))
	if err != nil {
		return unavailable(err)
	}
	if l, ok := plan.Layout(j); ok {
		layout = l
	}
	body := newPatientBody(r.Body, w)
	var files int
	var size int64
	err = c.Upload(ctx, layout, func(to io.Writer) error {
		files, size, err = clean(body, to)
		return err
	})
	var bad *badTar
	switch {
	case errors.As(err, &bad):
		return apierrors.NewBadRequest(bad.Error())
	case err != nil:
		return unavailable(err)
	}
	if err := s.ready(ctx, j, fmt.Sprintf("%d files, %d bytes", files, size)); err != nil {
		return err
	}
	w.Header().Set("Content-Type", "application/json")
	_, err = fmt.Fprintf(w, "{\"files\":%d,\"bytes\":%d}\n", files, size)
	return err
}

// ready notes in the status that the sources are there.
func (s *Server) ready(ctx context.Context, j *minik8s.GpuJob, message string) error {
	for {
		now, err := client.Get[*minik8s.GpuJob](ctx, s.client, client.Key{Kind: api.GpuJobs, Namespace: j.Namespace, Name: j.Name})
		if err != nil {
			return err
		}
		if now.UID != j.UID {
			return apierrors.NewConflict(api.GpuJobs.GR(), j.Name, errors.New("the job was deleted and made anew"))
		}
		upd := now.DeepCopy()
		plan.Set(&upd.Status, minik8s.GpuJobSourcesReady, true, "Uploaded", message, clock.Now())
		for i := range upd.Status.Conditions { // each upload is a change, which wakes the controller
			if c := &upd.Status.Conditions[i]; c.Type == minik8s.GpuJobSourcesReady {
				c.LastTransitionTime = metav1.NewTime(clock.Now().UTC().Truncate(time.Second))
			}
		}
		_, err = s.client.Update(ctx, upd, client.WriteOptions{Subresource: api.StatusSubresource})
		if !apierrors.IsConflict(err) {
			return err
		}
	}
}

// patientBody is a body whose pieces have deadlines.
type patientBody struct {
	r  io.Reader
	rc *http.ResponseController
}

func newPatientBody(r io.Reader, w http.ResponseWriter) *patientBody {
	return &patientBody{r: r, rc: http.NewResponseController(w)}
}

func (p *patientBody) Read(b []byte) (int, error) {
	p.rc.SetReadDeadline(time.Now().Add(uploadStall)) //nolint:errcheck // some connections have no deadlines
	n, err := p.r.Read(b)
	if err != nil {
		p.rc.SetReadDeadline(time.Time{}) //nolint:errcheck // as above
	}
	return n, err
}

// badTar is an upload that is not what it should be.
type badTar struct{ problem string }

func (b *badTar) Error() string { return b.problem }

// clean copies a tar and refuses what could reach beyond the job's folder: only files, folders, and links that stay within.
func clean(from io.Reader, to io.Writer) (files int, size int64, err error) {
	in, out := tar.NewReader(from), tar.NewWriter(to)
	for {
		h, err := in.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return 0, 0, &badTar{"the body is no tar: " + err.Error()}
		}
		name := path.Clean(strings.TrimPrefix(h.Name, "./"))
		if name == "." {
			continue
		}
		if !fs.ValidPath(name) {
			return 0, 0, &badTar{fmt.Sprintf("%q: expected a path below the folder of the sources", h.Name)}
		}
		now := &tar.Header{Name: name, Mode: h.Mode & 0o777 &^ 0o022, Typeflag: h.Typeflag, ModTime: h.ModTime, Size: h.Size}
		switch h.Typeflag {
		case tar.TypeReg:
			files++
			if size += h.Size; size > uploadLimit {
				return 0, 0, &badTar{fmt.Sprintf("sources may have %d GiB: bring larger data to the cluster beforehand", uploadLimit>>30)}
			}
		case tar.TypeDir:
			now.Size, now.Mode = 0, 0o700
		case tar.TypeSymlink:
			target := path.Join(path.Dir(name), h.Linkname)
			if path.IsAbs(h.Linkname) || !fs.ValidPath(target) {
				return 0, 0, &badTar{fmt.Sprintf("%s: the link leads to %s, beyond the folder of the sources", name, h.Linkname)}
			}
			now.Linkname, now.Size = h.Linkname, 0
		default:
			return 0, 0, &badTar{fmt.Sprintf("%s: expected a file, a folder or a symbolic link", name)}
		}
		if err := out.WriteHeader(now); err != nil {
			return 0, 0, err
		}
		if now.Size > 0 {
			if n, err := io.Copy(out, in); err != nil {
				if n < now.Size && (errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, tar.ErrHeader)) {
					return 0, 0, &badTar{"the upload broke off in " + name}
				}
				return 0, 0, err
			}
		}
	}
	return files, size, out.Close()
}
