package authentication

import (
	"context"
	"net"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/labstack/echo/v4"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"minik8s/internal/api"
	"minik8s/internal/bootstrap"
	"minik8s/internal/certs"
	"minik8s/internal/clock"
	"minik8s/internal/registry"
	"minik8s/internal/registry/serviceaccount"
	"minik8s/internal/streaming"
)

type connKey struct{}

// WithConn stores the connection of a request in its context, for handlers.
func WithConn(ctx context.Context, c net.Conn) context.Context {
	return context.WithValue(ctx, connKey{}, c)
}

// Registry decides who may impersonate whom.
type Registry interface {
	Authorize(ctx context.Context, q *registry.Request) error
}

// Authenticator determines the user of a request.
type Authenticator struct {
	reg     Registry
	objects serviceaccount.Reader
	tokens  *serviceaccount.Tokens
}

// New returns an authenticator; tokens checks the tokens of service accounts, objects has the join tokens.
func New(reg Registry, objects serviceaccount.Reader, tokens *serviceaccount.Tokens) *Authenticator {
	return &Authenticator{reg: reg, objects: objects, tokens: tokens}
}

// ErrNoCredentials is the error (401) for a request without credentials.
var ErrNoCredentials error = apierrors.NewUnauthorized("show a client certificate of the cluster's CA (see admin.kubeconfig in the data directory) " +
	"or a service account's token, or use the unix socket as root")

// Authenticate identifies a client by its certificate or its service account token, and root by the unix socket,
// which only root can open. The error is 401; it is ErrNoCredentials if the request has no credentials. If a token
// could not be checked, it is the registry's error.
func (a *Authenticator) Authenticate(req *http.Request) (registry.User, error) {
	if tls := req.TLS; tls != nil {
		if len(tls.VerifiedChains) == 0 || len(tls.VerifiedChains[0]) == 0 {
			return a.bearer(req)
		}
		cert := tls.VerifiedChains[0][0]
		if clock.Now().After(cert.NotAfter) { // it was verified when the connection was opened, which may be long ago
			return registry.User{}, apierrors.NewUnauthorized("the client's certificate expired at " + cert.NotAfter.UTC().Format(time.RFC3339) + ", after the connection was opened")
		}
		user := registry.User{Name: cert.Subject.CommonName,
			Groups: append(slices.Clip(cert.Subject.Organization), registry.GroupAuthenticated)}
		if slices.Contains(user.Groups, registry.GroupNodes) {
			user.Extra = map[string][]string{registry.KeyExtra: {certs.KeyPin(cert.RawSubjectPublicKeyInfo)}}
		}
		return user, nil
	}
	if c, ok := req.Context().Value(connKey{}).(net.Conn); ok {
		if _, unix := c.(*net.UnixConn); unix {
			return registry.User{Name: "root", Groups: []string{registry.GroupMasters, registry.GroupAuthenticated}}, nil
		}
	}
	return registry.User{}, ErrNoCredentials
}

// bearer returns the user of the request's bearer token. An invalid token is refused even on a path that needs none,
// because its sender takes it for valid.
func (a *Authenticator) bearer(req *http.Request) (registry.User, error) {
	scheme, token, _ := strings.Cut(strings.TrimSpace(req.Header.Get("Authorization")), " ")
	if shown := streaming.Bearer(req); scheme == "" && shown != "" {
		scheme, token = "Bearer", shown
	}
	if !strings.EqualFold(scheme, "Bearer") || strings.TrimSpace(token) == "" {
		return registry.User{}, ErrNoCredentials
	}
	if t, err := bootstrap.Parse(token); err == nil {
		return a.joining(req.Context(), t)
	}
	return a.tokens.Authenticate(req.Context(), strings.TrimSpace(token), a.tokens.Issuer())
}

// joining returns the user of a join token. The error is 401 if the token is not valid.
func (a *Authenticator) joining(ctx context.Context, t bootstrap.Token) (registry.User, error) {
	obj, err := a.objects.Read(ctx, api.Secrets, metav1.NamespaceSystem, bootstrap.SecretName(t.ID))
	if err != nil && !apierrors.IsNotFound(err) {
		return registry.User{}, err
	}
	secret, _ := obj.(*corev1.Secret)
	stored, err := bootstrap.Check(t, secret, clock.Now())
	if err != nil {
		return registry.User{}, apierrors.NewUnauthorized(err.Error())
	}
	return registry.User{Name: bootstrap.User(t.ID), Groups: append([]string{bootstrap.Group, registry.GroupAuthenticated}, stored.Groups...)}, nil
}

const userKey = "user"

// SetUser stores the user of a request.
func SetUser(c echo.Context, u registry.User) { c.Set(userKey, u) }

// User returns the user of a request.
func User(c echo.Context) registry.User {
	u, _ := c.Get(userKey).(registry.User)
	return u
}
