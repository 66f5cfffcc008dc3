package nodes

import (
	"context"
	"io"
	"net/http"
	"net/url"

	"github.com/labstack/echo/v4"
	corev1 "k8s.io/api/core/v1"

	"minik8s/internal/api/podspec"
	"minik8s/internal/streaming"
)

// Logs streams a container's log from its node, in the body or, over a WebSocket, as messages.
func (h *Handler) Logs(w *echo.Response, req *http.Request, pod *corev1.Pod, query url.Values) error {
	if _, err := streaming.ParseLogOptions(query); err != nil {
		return err
	}
	container, err := podspec.ChooseContainer(pod, query.Get("container"))
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(req.Context())
	defer cancel()
	// Open the log first, so that a refusal is an ordinary answer.
	in, err := h.get(ctx, pod.Spec.NodeName, "/containerLogs/"+pod.Namespace+"/"+pod.Name+"/"+container, query)
	if err != nil {
		return err
	}
	defer in.Close() //nolint:errcheck // it was only read
	var out io.Writer
	broken := &streaming.Reader{Reader: in}
	if streaming.IsWebSocket(req) {
		messages, left, closing, err := streaming.Upgrader{}.Open(w, req, false, h.WriteTimeout)
		if err != nil {
			return err
		}
		defer func() { closing(broken.Err == nil) }()
		context.AfterFunc(left, cancel)
		out = messages
	} else {
		w.Header().Set("Content-Type", "text/plain")
		w.WriteHeader(http.StatusOK)
		out = streaming.NewWriter(w, h.WriteTimeout)
		if _, err := out.Write(nil); err != nil { // shows the client that the log is open, even if it is still empty
			return nil //nolint:nilerr // the client has disconnected
		}
	}
	if _, err := io.Copy(out, broken); err != nil && ctx.Err() == nil {
		h.Log.Debug("a log stream broke", "pod", pod.Name, "error", err)
	}
	if broken.Err != nil && req.Context().Err() == nil {
		panic(http.ErrAbortHandler) // a clean end would make what was sent look like the whole log
	}
	return nil
}
