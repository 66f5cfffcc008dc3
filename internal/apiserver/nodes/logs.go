package nodes

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/labstack/echo/v4"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"minik8s/internal/apiserver/flowcontrol"
	"minik8s/internal/apiserver/streaming"
)

// Logs streams a container's log from its node, in the body or, over a WebSocket, as messages.
func (h *Handler) Logs(w *echo.Response, req *http.Request, pod *corev1.Pod, opts *corev1.PodLogOptions) error {
	ctx, cancel := context.WithCancel(req.Context())
	defer cancel()
	// Open the log first, so that a refusal is an ordinary answer.
	in, err := h.Agents.Logs(ctx, pod.Spec.NodeName, pod.Namespace, pod.Name, opts.Container, opts)
	if err != nil {
		return err
	}
	defer in.Close() //nolint:errcheck // it was only read
	var out io.Writer
	if streaming.IsWebSocket(req) {
		messages, left, closing, err := streaming.Open(w, req, false, h.WriteTimeout)
		if err != nil {
			return err
		}
		defer closing()
		context.AfterFunc(left, cancel)
		out = messages
	} else {
		w.Header().Set("Content-Type", "text/plain")
		w.WriteHeader(http.StatusOK)
		out = flowcontrol.NewWriter(w, h.WriteTimeout)
		if _, err := out.Write(nil); err != nil { // shows the client that the log is open, even if it is still empty
			return nil //nolint:nilerr // the client has disconnected
		}
	}
	if _, err := io.Copy(out, in); err != nil && ctx.Err() == nil {
		h.Log.Debug("a log stream broke", "pod", pod.Name, "error", err)
	}
	return nil
}

// LogOptions reads the query of pods/log. The error is 400.
func LogOptions(q url.Values) (*corev1.PodLogOptions, error) {
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
