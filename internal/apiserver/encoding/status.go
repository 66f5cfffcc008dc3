package encoding

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"github.com/labstack/echo/v4"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Error encodes a Status and returns its media type: protobuf if the client asks for it, else JSON.
func Error(status *metav1.Status, accept string) (body []byte, contentType string) {
	if m, err := Negotiate(accept); err == nil && m.Format == Protobuf {
		if b, err := encodeProtobuf(status); err == nil {
			return b, ProtobufType
		}
	}
	b, _ := json.Marshal(status) //nolint:errcheck // strings and numbers
	return append(b, '\n'), JSONType
}

// Status converts any error to a Kubernetes Status. An error that has no Status is internal (500).
func Status(err error) metav1.Status {
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
			Details: &metav1.StatusDetails{}} // clients read it without checking for nil
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

// SendJSON answers with a value that is not an API object.
func SendJSON(c echo.Context, v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return c.Blob(http.StatusOK, JSONType, append(b, '\n'))
}
