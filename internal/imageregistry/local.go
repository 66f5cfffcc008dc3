package imageregistry

import (
	"io"
	"net/http"
	"strconv"
	"sync"
)

// RoundTrip implements http.RoundTripper: requests within this process, without a connection. They see only what is here, since
// who is asked for what is missing pushes this way.
func (r *Registry) RoundTrip(req *http.Request) (*http.Response, error) {
	body, pipe := io.Pipe()
	a := &answer{header: http.Header{}, pipe: pipe, begun: make(chan struct{})}
	inner := req.Clone(req.Context())
	inner.RequestURI = req.URL.RequestURI()
	if inner.Body == nil {
		inner.Body = http.NoBody
	}
	go func() {
		defer func() {
			if v := recover(); v != nil {
				pipe.CloseWithError(io.ErrUnexpectedEOF) //nolint:errcheck // it never fails
			}
			a.WriteHeader(http.StatusOK)
			pipe.Close()       //nolint:errcheck // as above
			inner.Body.Close() //nolint:errcheck // it was only read
		}()
		r.serve(a, inner)
	}()
	<-a.begun
	size, err := strconv.ParseInt(a.header.Get("Content-Length"), 10, 64)
	if err != nil {
		size = -1
	}
	return &http.Response{Status: strconv.Itoa(a.code) + " " + http.StatusText(a.code), StatusCode: a.code, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: a.header.Clone(), Body: body, ContentLength: size, Request: req}, nil
}

// answer is a ResponseWriter whose body is read elsewhere.
type answer struct {
	header http.Header
	pipe   *io.PipeWriter
	code   int
	once   sync.Once
	begun  chan struct{}
}

func (a *answer) Header() http.Header { return a.header }

func (a *answer) WriteHeader(code int) {
	a.once.Do(func() {
		a.code = code
		close(a.begun)
	})
}

func (a *answer) Write(b []byte) (int, error) {
	a.WriteHeader(http.StatusOK)
	return a.pipe.Write(b)
}
