package apiserver

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/labstack/echo/v4"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"minik8s/internal/api"
	"minik8s/internal/apiserver/streaming"
	"minik8s/internal/registry"
)

// logs streams a container's log from the node that has it.
func (s *Server) logs(r *request) error {
	opts, err := r.logOptions()
	if err != nil {
		return err
	}
	pod, err := s.podOnNode(r)
	if err != nil {
		return err
	}
	ctx := r.Request().Context()
	if streaming.IsWebSocket(r.Request()) {
		return s.logMessages(r, pod.Spec.NodeName, opts)
	}
	in, err := s.cfg.Nodes.Logs(ctx, pod.Spec.NodeName, r.namespace, r.name, opts.Container, opts)
	if err != nil {
		return err
	}
	defer in.Close() //nolint:errcheck // it was only read
	r.Response().Header().Set("Content-Type", "text/plain")
	r.Response().WriteHeader(http.StatusOK)
	out := s.paced(r.Response())
	if _, err := out.Write(nil); err == nil { // the client sees that the log is open, also one that says nothing yet
		s.copyLog(ctx, r, out, in)
	}
	return nil
}

func (s *Server) copyLog(ctx context.Context, r *request, out io.Writer, in io.Reader) {
	if _, err := io.Copy(out, in); err != nil && ctx.Err() == nil {
		s.cfg.Log.Debug("a log stream broke", "pod", r.name, "error", err)
	}
}

// logMessages sends a log as messages of a WebSocket.
func (s *Server) logMessages(r *request, node string, opts *corev1.PodLogOptions) error {
	// The log is opened first: a refusal is an ordinary answer.
	ctx, cancel := context.WithCancel(r.Request().Context())
	defer cancel()
	in, err := s.cfg.Nodes.Logs(ctx, node, r.namespace, r.name, opts.Container, opts)
	if err != nil {
		return err
	}
	defer in.Close() //nolint:errcheck // it was only read
	out, gone, closing, err := streaming.Open(r.Response(), r.Request(), false, s.cfg.WriteTimeout)
	if err != nil {
		return err
	}
	defer closing()
	context.AfterFunc(gone, cancel)
	s.copyLog(ctx, r, out, in)
	return nil
}

func unreachable(node string) error {
	return apierrors.NewServiceUnavailable("node " + node + " cannot be reached from here")
}

// logOptions reads the query of pods/log.
func (r *request) logOptions() (*corev1.PodLogOptions, error) {
	q := r.query
	o := &corev1.PodLogOptions{Container: q.Get("container"), Follow: isTrue(q.Get("follow")),
		Previous: isTrue(q.Get("previous")), Timestamps: isTrue(q.Get("timestamps"))}
	for name, into := range map[string]**int64{"tailLines": &o.TailLines, "sinceSeconds": &o.SinceSeconds, "limitBytes": &o.LimitBytes} {
		v := q.Get(name)
		if v == "" {
			continue
		}
		n, err := strconv.ParseInt(v, 10, 64)
		if err != nil || n < 0 || n == 0 && name != "tailLines" {
			return nil, apierrors.NewBadRequest(fmt.Sprintf("%s: %q is not a positive number", name, v))
		}
		*into = &n
	}
	if v := q.Get("sinceTime"); v != "" {
		t, err := time.Parse(time.RFC3339, v)
		if err != nil {
			return nil, apierrors.NewBadRequest("sinceTime: " + strconv.Quote(v) + " is not a time like 2006-01-02T15:04:05Z")
		}
		o.SinceTime = &metav1.Time{Time: t}
		if o.SinceSeconds != nil {
			return nil, apierrors.NewBadRequest("sinceTime, sinceSeconds: give one of them")
		}
	}
	return o, nil
}

// images finds the images of the node that a path names.
func (s *Server) images(c echo.Context, verb string) (Images, error) {
	node := c.Param("node")
	q := &registry.Request{User: userOf(c), Verb: verb, Kind: api.Nodes, Sub: "images", Name: node}
	if _, err := s.reg.Behind(c.Request().Context(), q); err != nil {
		return nil, err
	}
	if s.cfg.Nodes == nil {
		return nil, unreachable(node)
	}
	return s.cfg.Nodes.Images(node)
}

type imageList struct {
	Items []Image `json:"items"`
}

func (s *Server) listImages(c echo.Context) error {
	images, err := s.images(c, "get")
	if err != nil {
		return err
	}
	items, err := images.List(c.Request().Context())
	if err != nil {
		return err
	}
	return sendJSON(c, imageList{Items: append([]Image{}, items...)})
}

// addImage pulls ?ref=, with progress as lines of JSON, or imports an archive from the body.
func (s *Server) addImage(c echo.Context) error {
	images, err := s.images(c, "create")
	if err != nil {
		return err
	}
	if ref := c.QueryParam("ref"); ref != "" {
		return s.pullImage(c, images, ref)
	}
	if ct := c.Request().Header.Get("Content-Type"); !strings.HasPrefix(ct, "application/x-tar") {
		return apierrors.NewBadRequest("to pull an image give ?ref=NAME; to import an archive send it with Content-Type: application/x-tar")
	}
	s.paced(c.Response()) // an import takes as long as it takes
	items, err := images.Import(c.Request().Context(), c.Request().Body)
	if err != nil {
		return apierrors.NewBadRequest("the archive cannot be imported: " + err.Error())
	}
	return sendJSON(c, imageList{Items: append([]Image{}, items...)})
}

// pullLine is one line of a pull's progress.
type pullLine struct {
	Ref   string `json:"ref"`
	Done  int64  `json:"done"`
	Total int64  `json:"total"`
	Error string `json:"error,omitempty"`
}

func (s *Server) pullImage(c echo.Context, images Images, ref string) error {
	c.Response().Header().Set("Content-Type", jsonType)
	enc := json.NewEncoder(s.paced(c.Response()))
	last := pullLine{Ref: ref}
	err := images.Pull(c.Request().Context(), ref, func(done, total int64) {
		last.Done, last.Total = done, total
		enc.Encode(last) //nolint:errcheck // a client that has gone ends the context
	})
	if err != nil {
		if !c.Response().Committed {
			return apierrors.NewBadRequest(err.Error())
		}
		last.Error = err.Error()
	}
	return enc.Encode(last)
}

func (s *Server) removeImage(c echo.Context) error {
	images, err := s.images(c, "delete")
	if err != nil {
		return err
	}
	ref := c.QueryParam("ref")
	if ref == "" {
		return apierrors.NewBadRequest("ref: say which image to remove")
	}
	err = images.Remove(c.Request().Context(), ref)
	if apierrors.IsNotFound(err) {
		return err
	}
	if err != nil {
		return apierrors.NewBadRequest(err.Error())
	}
	return sendJSON(c, metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusSuccess})
}
