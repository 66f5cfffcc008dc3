package apiserver

import (
	"context"
	"net"
	"net/http"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/labstack/echo/v4"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"minik8s/internal/apiserver/streaming"
	"minik8s/internal/registry"
)

type connKey struct{}

// withConn lets a handler know over which connection its request came.
func withConn(ctx context.Context, c net.Conn) context.Context {
	return context.WithValue(ctx, connKey{}, c)
}

// open are the paths that anybody may read.
var open = []string{"/healthz", "/livez", "/readyz", "/version"}

const userKey = "user"

// guard is around every request: it finds out who asks, counts, and turns a panic into a 500.
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
		user, err := s.authenticate(c.Request())
		if err != nil && (err != errNobody || !isOpen(c.Request().URL.Path)) { //nolint:errorlint // it is that very error
			return err
		}
		if user, err = s.impersonate(c.Request(), user); err != nil {
			return err
		}
		c.Set(userKey, user)
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

// errNobody is for who shows nothing at all.
var errNobody = apierrors.NewUnauthorized("show a client certificate of the cluster's CA (see admin.kubeconfig in the data directory) " +
	"or a service account's token, or use the unix socket as root")

// authenticate knows a client by its certificate or by the token of a service account, and root by the unix
// socket that only root can open.
func (s *Server) authenticate(req *http.Request) (registry.User, error) {
	if tls := req.TLS; tls != nil {
		if len(tls.VerifiedChains) == 0 || len(tls.VerifiedChains[0]) == 0 {
			return s.bearer(req)
		}
		cert := tls.VerifiedChains[0][0]
		return registry.User{Name: cert.Subject.CommonName,
			Groups: append(slices.Clip(cert.Subject.Organization), registry.GroupAuthenticated)}, nil
	}
	if c, ok := req.Context().Value(connKey{}).(net.Conn); ok {
		if _, unix := c.(*net.UnixConn); unix {
			return registry.User{Name: "root", Groups: []string{registry.GroupMasters, registry.GroupAuthenticated}}, nil
		}
	}
	return registry.User{}, errNobody
}

// bearer is who shows a token. A bad one is refused even where none is needed: who sends it believes that
// it is good.
func (s *Server) bearer(req *http.Request) (registry.User, error) {
	scheme, token, _ := strings.Cut(strings.TrimSpace(req.Header.Get("Authorization")), " ")
	if shown := streaming.Bearer(req); scheme == "" && shown != "" {
		scheme, token = "Bearer", shown
	}
	if !strings.EqualFold(scheme, "Bearer") || strings.TrimSpace(token) == "" {
		return registry.User{}, errNobody
	}
	return s.reg.Authenticate(req.Context(), strings.TrimSpace(token))
}

func userOf(c echo.Context) registry.User {
	u, _ := c.Get(userKey).(registry.User)
	return u
}
