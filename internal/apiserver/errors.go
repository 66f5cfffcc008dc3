package apiserver

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"

	"github.com/labstack/echo/v4"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

var errPanic = errors.New("the server failed on this request; its log says how")

// fail writes any error as a Kubernetes Status. What is no Status is internal.
func (s *Server) fail(err error, c echo.Context) {
	if c.Response().Committed {
		return // too late to say: the answer is already on its way
	}
	status := statusOf(err)
	if status.Code >= 500 && status.Code != http.StatusInsufficientStorage {
		s.cfg.Log.Warn("request failed", "method", c.Request().Method, "path", c.Request().URL.Path, "error", err)
	}
	h := c.Response().Header()
	if d := status.Details; d != nil && d.RetryAfterSeconds > 0 {
		h.Set("Retry-After", strconv.Itoa(int(d.RetryAfterSeconds)))
	}
	if status.Code == http.StatusUnauthorized {
		h.Set("WWW-Authenticate", `Basic realm="minik8s"`)
	}
	if neg := negotiate(c.Request().Header.Get("Accept")); neg.format == protobufFormat {
		if b, err := encodeProtobuf(&status); err == nil {
			c.Blob(int(status.Code), protobufType, b) //nolint:errcheck // the client has gone
			return
		}
	}
	b, _ := json.Marshal(status)                        //nolint:errcheck // strings and numbers
	c.Blob(int(status.Code), jsonType, append(b, '\n')) //nolint:errcheck // the client has gone
}

func statusOf(err error) metav1.Status {
	var api apierrors.APIStatus
	if errors.As(err, &api) {
		st := api.Status()
		st.TypeMeta = metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}
		st.Status = metav1.StatusFailure
		if st.Code == 0 {
			st.Code = http.StatusInternalServerError
		}
		return st
	}
	var he *echo.HTTPError
	if errors.As(err, &he) {
		st := metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusFailure,
			Code: int32(he.Code), Message: fmt.Sprint(he.Message),
			Details: &metav1.StatusDetails{}} // clients look into it without asking whether it is there
		switch he.Code {
		case http.StatusNotFound:
			st.Reason, st.Message = metav1.StatusReasonNotFound, "the server could not find the requested resource"
		case http.StatusMethodNotAllowed:
			st.Reason, st.Message = metav1.StatusReasonMethodNotAllowed, "the server does not allow this method on the requested resource"
		}
		return st
	}
	st := apierrors.NewInternalError(err).ErrStatus
	st.TypeMeta = metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}
	return st
}
