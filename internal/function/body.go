package function

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"minik8s/internal/controller/loop"
)

// bodyTime is how long a caller may take to send an argument.
const bodyTime = 30 * time.Second

// The room that is made for an argument before any of it has come.
const (
	minBody   = 512
	firstBody = 64 << 10
)

// read reads an argument of a function, most bytes at most. What has come of it counts as the function's, so that who sends slowly has no more of
// the master than he has sent; done ends that.
func (s *Server) read(w http.ResponseWriter, r *http.Request, key loop.Key, most int64) (body []byte, done func(), err error) {
	held := int64(0)
	done = func() { s.under.give(key, amount{bytes: held}) }
	within := http.NewResponseController(w)
	within.SetReadDeadline(time.Now().Add(s.bodyTime)) //nolint:errcheck // a connection without one has another limit
	from := http.MaxBytesReader(w, r.Body, most)
	body = make([]byte, 0, min(max(r.ContentLength+1, minBody), firstBody))
	for {
		if len(body) == cap(body) {
			body = slices.Grow(body, len(body))
		}
		n, err := from.Read(body[len(body):cap(body)])
		if n > 0 {
			if err := s.under.take(key, amount{bytes: int64(n)}); err != nil {
				done()
				return nil, nil, err
			}
			held += int64(n)
			body = body[:len(body)+n]
		}
		tooLong := (*http.MaxBytesError)(nil)
		switch {
		case err == nil:
			continue
		case errors.Is(err, io.EOF):
			within.SetReadDeadline(time.Time{}) //nolint:errcheck // as above
			return body, done, nil
		case errors.As(err, &tooLong):
			err = apierrors.NewRequestEntityTooLargeError(fmt.Sprintf("the body may have %d bytes", most))
		case errors.Is(err, os.ErrDeadlineExceeded):
			w.Header().Set("Connection", "close")
			err = &apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusFailure, Code: http.StatusRequestTimeout, Reason: metav1.StatusReasonTimeout,
				Message: fmt.Sprintf("the body has not come within %v: send it faster, or a shorter one", s.bodyTime)}}
		default:
			err = apierrors.NewBadRequest("the body ended early: " + err.Error())
		}
		done()
		return nil, nil, err
	}
}
