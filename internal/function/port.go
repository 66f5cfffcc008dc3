package function

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"minik8s/internal/api"
	"minik8s/internal/api/minik8s"
	"minik8s/internal/client"
	"minik8s/internal/streaming"
)

// ServeHTTP implements http.Handler for the port of calls: POST /NAME, or /NAMESPACE/NAME. Nobody is asked who they are.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	namespace, name, ok := strings.Cut(strings.Trim(r.URL.Path, "/"), "/")
	if !ok {
		namespace, name = metav1.NamespaceDefault, namespace
	}
	switch {
	case r.Method != http.MethodPost:
		w.Header().Set("Allow", http.MethodPost)
		refuse(w, http.StatusMethodNotAllowed, "functions are called by POST")
		return
	case name == "" || strings.Contains(name, "/"):
		refuse(w, http.StatusNotFound, "expected POST /NAME or /NAMESPACE/NAME")
		return
	}
	s.callPlainly(w, r, namespace, name)
}

// refuse says that a request is none that can be answered.
func refuse(w http.ResponseWriter, code int, format string, args ...any) {
	w.Header().Set(headerFault, minik8s.FaultCaller)
	http.Error(w, fmt.Sprintf(format, args...), code)
}

// callPlainly calls a function for somebody who is not asked who he is.
func (s *Server) callPlainly(w http.ResponseWriter, r *http.Request, namespace, name string) {
	if r.Header.Get("Origin") != "" { // a page in somebody's browser, on a machine that may call
		refuse(w, http.StatusForbidden, "not for pages of other sites")
		return
	}
	fn, err := client.Get[*minik8s.Function](r.Context(), s.client, client.Key{Kind: api.Functions, Namespace: namespace, Name: name})
	if apierrors.IsNotFound(err) {
		refuse(w, http.StatusNotFound, "no such function %s", name)
		return
	}
	if err == nil {
		err = s.answer(w, r, fn, r.URL.Query(), r.RemoteAddr)
	}
	if err != nil {
		failPlainly(w, err)
	}
}

// failPlainly says an error of the API in plain HTTP. The caller's own mistakes are those with a code of 4xx, but for too many calls.
func failPlainly(w http.ResponseWriter, err error) {
	code, fault := http.StatusInternalServerError, minik8s.FaultPlatform
	if status := apierrors.APIStatus(nil); errors.As(err, &status) {
		s := status.Status()
		code = int(s.Code)
		if s.Details != nil && s.Details.RetryAfterSeconds > 0 {
			w.Header().Set("Retry-After", strconv.Itoa(int(s.Details.RetryAfterSeconds)))
		}
	}
	if code >= 400 && code < 500 && code != http.StatusTooManyRequests {
		fault = minik8s.FaultCaller
	}
	w.Header().Set(headerFault, fault)
	http.Error(w, err.Error(), code)
}

// The times that a caller has: for a request's header, and between requests.
const (
	headerTime = 10 * time.Second
	idleTime   = 3 * time.Minute
)

// maxHeader is what the header of a request may have, in bytes.
const maxHeader = 64 << 10

// Serve answers plain HTTP with h until ctx ends.
func Serve(ctx context.Context, l net.Listener, h http.Handler) error {
	return serveQuietly(ctx, l, h, mostQuiet)
}

// pieceTime is how long a caller may take to read each piece of an answer.
const pieceTime = 30 * time.Second

// inPieces has each piece of an answer read in time: a result is held until its caller has it.
func inPieces(h http.Handler, within time.Duration) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h.ServeHTTP(&pieces{w, streaming.NewWriter(w, within)}, r)
	})
}

// pieces is an answer that is written so.
type pieces struct {
	http.ResponseWriter
	to *streaming.Writer
}

// Write implements io.Writer.
func (p *pieces) Write(b []byte) (int, error) { return p.to.Write(b) }

// Unwrap is for http.ResponseController.
func (p *pieces) Unwrap() http.ResponseWriter { return p.ResponseWriter }

func serveQuietly(ctx context.Context, l net.Listener, h http.Handler, most int) error {
	q := &quiet{most: most, since: map[net.Conn]time.Time{}}
	srv := &http.Server{Handler: inPieces(h, pieceTime), ReadHeaderTimeout: headerTime, IdleTimeout: idleTime, MaxHeaderBytes: maxHeader, ConnState: q.changed}
	stopped := context.AfterFunc(ctx, func() {
		stop, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		if srv.Shutdown(stop) != nil {
			srv.Close() //nolint:errcheck // no way to handle the error
		}
	})
	defer stopped()
	if err := srv.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}
