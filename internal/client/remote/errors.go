package remote

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"syscall"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Unreachable says that a server gave no answer.
type Unreachable struct {
	At  string // the URL or the socket
	Err error
}

// Error names the place, the reason, and what to do about it.
func (e *Unreachable) Error() string {
	text := fmt.Sprintf("cannot reach the API at %s: ", e.At)
	var unknownCA x509.UnknownAuthorityError
	var badName x509.HostnameError
	var badRecord tls.RecordHeaderError
	var invalid x509.CertificateInvalidError
	switch {
	case errors.Is(e.Err, fs.ErrPermission):
		return text + "it may be opened by root only: use sudo, or a kubeconfig (--kubeconfig)"
	case errors.Is(e.Err, syscall.ECONNREFUSED), errors.Is(e.Err, fs.ErrNotExist):
		return text + "is minik8sd running? Nothing listens there (" + reason(e.Err) + ")"
	case errors.Is(e.Err, io.EOF), errors.Is(e.Err, io.ErrUnexpectedEOF), errors.Is(e.Err, syscall.ECONNRESET):
		return text + "the connection ended without an answer (" + reason(e.Err) + "): it may be starting or stopping, " +
			"or, on a worker, no master can be reached; minik8sd's log says which"
	case errors.As(e.Err, &unknownCA):
		return text + "its certificate was not signed by the CA that is trusted here; " +
			"if the cluster was made anew, take its new kubeconfig (DATA/admin.kubeconfig)"
	case errors.As(e.Err, &badName):
		return text + "its certificate is for another name (" + reason(e.Err) + ")"
	case errors.As(e.Err, &invalid) && invalid.Reason == x509.Expired:
		return text + "its certificate is not valid now (" + reason(e.Err) + "): is the clock right, here and there?"
	case errors.As(e.Err, &badRecord):
		return text + "it does not speak TLS: is the URL's https:// right?"
	}
	return text + "is minik8sd running? (" + reason(e.Err) + ")"
}

// Unwrap is what the connection failed with.
func (e *Unreachable) Unwrap() error { return e.Err }

// IsUnreachable reports whether err means that the server gave no answer at all.
func IsUnreachable(err error) bool {
	var u *Unreachable
	return errors.As(err, &u)
}

// reason is an error without the method and URL that net/http prepends.
func reason(err error) string {
	var u *url.Error
	if errors.As(err, &u) {
		err = u.Err
	}
	return err.Error()
}

// failed turns a transport error into an *Unreachable; if the caller's ctx has ended, that is the error.
func (c *Client) failed(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return &Unreachable{At: c.at, Err: err}
}

// maxStatus bounds how much of an error's body is read.
const maxStatus = 1 << 20

// statusError reads the error that the server sent.
func statusError(resp *http.Response, r request) error {
	data, _ := io.ReadAll(io.LimitReader(resp.Body, maxStatus))
	var status metav1.Status
	if err := json.Unmarshal(data, &status); err == nil && status.Kind == "Status" {
		if status.Code == 0 {
			status.Code = int32(resp.StatusCode)
		}
		return &apierrors.StatusError{ErrStatus: status}
	}
	// Not an error of the API server: from a proxy, or a route that does not exist.
	text := strings.TrimSpace(string(data))
	limit := 300 // a page for browsers says little that is of use here
	if strings.HasPrefix(resp.Header.Get("Content-Type"), "text/plain") {
		limit = maxStatus
	}
	if len(text) > limit {
		text = text[:limit] + " ..."
	}
	retry, _ := strconv.Atoi(resp.Header.Get("Retry-After"))
	err := apierrors.NewGenericServerResponse(resp.StatusCode, r.method, schema.GroupResource{}, "", text, retry, true)
	err.ErrStatus.Message += " (" + r.method + " " + r.path + ")"
	return err
}
