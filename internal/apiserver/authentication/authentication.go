package authentication

import (
	"context"
	"net"
	"net/http"
	"slices"
	"strings"

	"github.com/labstack/echo/v4"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"minik8s/internal/apiserver/streaming"
	"minik8s/internal/registry"
)

type connKey struct{}

// WithConn lets a handler know over which connection its request came.
func WithConn(ctx context.Context, c net.Conn) context.Context {
	return context.WithValue(ctx, connKey{}, c)
}

// Registry is what knows the tokens, and who may impersonate whom.
type Registry interface {
	Authenticate(ctx context.Context, token string) (registry.User, error)
	Authorize(ctx context.Context, q *registry.Request) error
}

// Authenticator finds out who asks.
type Authenticator struct{ reg Registry }

// New is an authenticator.
func New(reg Registry) *Authenticator { return &Authenticator{reg: reg} }

// ErrNoCredentials is for who shows nothing at all.
var ErrNoCredentials error = apierrors.NewUnauthorized("show a client certificate of the cluster's CA (see admin.kubeconfig in the data directory) " +
	"or a service account's token, or use the unix socket as root")

// Authenticate knows a client by its certificate or by the token of a service account, and root by the unix
// socket that only root can open. The error is 401; of who shows nothing, ErrNoCredentials.
func (a *Authenticator) Authenticate(req *http.Request) (registry.User, error) {
	if tls := req.TLS; tls != nil {
		if len(tls.VerifiedChains) == 0 || len(tls.VerifiedChains[0]) == 0 {
			return a.bearer(req)
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
	return registry.User{}, ErrNoCredentials
}

// bearer is who shows a token. A bad one is refused even where none is needed: who sends it believes that
// it is good.
func (a *Authenticator) bearer(req *http.Request) (registry.User, error) {
	scheme, token, _ := strings.Cut(strings.TrimSpace(req.Header.Get("Authorization")), " ")
	if shown := streaming.Bearer(req); scheme == "" && shown != "" {
		scheme, token = "Bearer", shown
	}
	if !strings.EqualFold(scheme, "Bearer") || strings.TrimSpace(token) == "" {
		return registry.User{}, ErrNoCredentials
	}
	return a.reg.Authenticate(req.Context(), strings.TrimSpace(token))
}

const userKey = "user"

// SetUser notes who asks.
func SetUser(c echo.Context, u registry.User) { c.Set(userKey, u) }

// User is who asks.
func User(c echo.Context) registry.User {
	u, _ := c.Get(userKey).(registry.User)
	return u
}
