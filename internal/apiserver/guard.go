package apiserver

import (
	"errors"
	"net/http"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"github.com/labstack/echo/v4"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"minik8s/internal/apiserver/authentication"
	"minik8s/internal/apiserver/encoding"
	"minik8s/internal/registry"
)

// open are the paths that need no authentication.
var open = []string{"/healthz", "/livez", "/readyz", "/version"}

// guard wraps every request: it determines the user, counts, and turns a panic into a 500.
func (s *Server) guard(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) (err error) {
		began := time.Now()
		defer func() {
			p := recover()
			if p == http.ErrAbortHandler { //nolint:errorlint // an answer that cannot be finished; the connection is cut
				s.metrics.observe(c, time.Since(began))
				panic(p)
			}
			if p != nil {
				s.cfg.Log.Error("a request panicked", "method", c.Request().Method, "path", c.Request().URL.Path,
					"panic", p, "stack", string(debug.Stack()))
				err = apierrors.NewInternalError(errPanic)
			}
			if err != nil {
				s.fail(err, c)
				err = nil
			}
			s.metrics.observe(c, time.Since(began))
		}()
		user, err := s.auth.Authenticate(c.Request())
		if err != nil && (err != authentication.ErrNoCredentials || !isOpen(c.Request().URL.Path)) { //nolint:errorlint // it is never wrapped
			return err
		}
		if user, err = s.auth.Impersonate(c.Request(), user); err != nil {
			return err
		}
		authentication.SetUser(c, user)
		return next(c)
	}
}

func isOpen(path string) bool {
	for _, p := range open {
		if path == p || strings.HasPrefix(path, p+"/") {
			return true
		}
	}
	return false
}

// byPath serves a path that is not an object, for users who may use it. It takes a unit of the limiter, as a small request does.
func (s *Server) byPath(serve echo.HandlerFunc) echo.HandlerFunc {
	return s.authorised(s.counted(serve, false))
}

// lasting is byPath for an answer that may last.
func (s *Server) lasting(serve echo.HandlerFunc) echo.HandlerFunc {
	return s.authorised(s.counted(serve, true))
}

// authorised asks for the user's rights only. It is for handlers that enter the limiter themselves, or answer also when it is full.
func (s *Server) authorised(serve echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		path := c.Request().URL.Path
		if !isOpen(path) {
			q := &registry.Request{User: authentication.User(c), Verb: strings.ToLower(c.Request().Method), Path: path}
			if err := s.reg.Authorize(c.Request().Context(), q); err != nil {
				return err
			}
		}
		return serve(c)
	}
}

// counted serves within the bounds of what may be under way. What is open to all costs nothing, and is always answered.
func (s *Server) counted(serve echo.HandlerFunc, long bool) echo.HandlerFunc {
	return func(c echo.Context) error {
		if isOpen(c.Request().URL.Path) {
			return serve(c)
		}
		leave, err := s.limiter.Enter(c.Request().Context(), authentication.User(c), 1, long)
		if err != nil {
			return err
		}
		defer leave()
		return serve(c)
	}
}

var errPanic = errors.New("the server failed on this request; its log says how")

// fail writes any error as a Kubernetes Status. An error that has no Status is internal (500).
func (s *Server) fail(err error, c echo.Context) {
	if c.Response().Committed {
		return // too late: the answer has already begun
	}
	status := encoding.Status(err)
	if status.Code >= 500 && status.Code != http.StatusInsufficientStorage {
		s.cfg.Log.Warn("request failed", "method", c.Request().Method, "path", c.Request().URL.Path, "error", err)
	}
	h := c.Response().Header()
	if d := status.Details; d != nil && d.RetryAfterSeconds > 0 {
		h.Set("Retry-After", strconv.Itoa(int(d.RetryAfterSeconds)))
	}
	if status.Code == http.StatusUnauthorized {
		h.Set("WWW-Authenticate", `Basic realm="minik8s"`)
		if tls := c.Request().TLS; tls != nil && len(tls.VerifiedChains) > 0 { // its certificate has expired: a new connection may have a new one
			h.Set("Connection", "close")
		}
	}
	body, contentType := encoding.Error(&status, c.Request().Header.Get("Accept"))
	c.Blob(int(status.Code), contentType, body) //nolint:errcheck // the client has disconnected
}
