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

// mostReading is how many arguments may be on their way at a time: each has a connection, which is a file of the daemon's.
const mostReading = 8192

// The room that is made for an argument before any of it has come.
const (
	minBody   = 512
	firstBody = 64 << 10
)

// gather reads all there is. take is told of what has come, and may end it.
func gather(from io.Reader, expected int64, take func(n int) error) ([]byte, error) {
	all := make([]byte, 0, min(max(expected+1, minBody), firstBody))
	for {
		if len(all) == cap(all) {
			all = slices.Grow(all, len(all))
		}
		n, err := from.Read(all[len(all):cap(all)])
		if n > 0 {
			if err := take(n); err != nil {
				return nil, err
			}
			all = all[:len(all)+n]
		}
		if errors.Is(err, io.EOF) {
			return all, nil
		}
		if err != nil {
			return nil, err
		}
	}
}

// read reads an argument of a function, most bytes at most. Only bytes that have come are counted, in the room that is returned, and only
// they have memory: who sends slowly has no more of the master than he has sent.
func (s *Server) read(w http.ResponseWriter, r *http.Request, key loop.Key, most int64) ([]byte, *room, error) {
	if s.reading.Add(1) > mostReading {
		s.reading.Add(-1)
		w.Header().Set("Connection", "close")
		return nil, nil, apierrors.NewTooManyRequests(fmt.Sprintf("%d callers have not sent their arguments yet; call again", mostReading), 1)
	}
	defer s.reading.Add(-1)
	held := &room{budget: s.under, key: key}
	within := http.NewResponseController(w)
	within.SetReadDeadline(time.Now().Add(s.bodyTime)) //nolint:errcheck // a connection without one has another limit
	body, err := gather(http.MaxBytesReader(w, r.Body, most), r.ContentLength, held.take)
	if err == nil {
		within.SetReadDeadline(time.Time{}) //nolint:errcheck // as above
		return body, held, nil
	}
	held.free()
	tooLong, status := (*http.MaxBytesError)(nil), apierrors.APIStatus(nil)
	switch {
	case errors.As(err, &status): // there is no room
	case errors.As(err, &tooLong):
		err = apierrors.NewRequestEntityTooLargeError(fmt.Sprintf("the body may have %d bytes", most))
	case errors.Is(err, os.ErrDeadlineExceeded):
		w.Header().Set("Connection", "close")
		err = &apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusFailure, Code: http.StatusRequestTimeout, Reason: metav1.StatusReasonTimeout,
			Message: fmt.Sprintf("the body has not come within %v: send it faster, or a shorter one", s.bodyTime)}}
	default:
		err = apierrors.NewBadRequest("the body ended early: " + err.Error())
	}
	return nil, nil, err
}
