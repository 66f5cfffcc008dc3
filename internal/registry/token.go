package registry

import (
	"context"

	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"minik8s/internal/api"
	"minik8s/internal/bootstrap"
	"minik8s/internal/registry/serviceaccount"
	"minik8s/internal/tokens"
)

// UseTokens sets the authority that signs the tokens of service accounts. It is called before anything is served;
// without it there are no tokens.
func (r *Registry) UseTokens(a *tokens.Authority) { r.tokens = serviceaccount.New(a, reader{r}) }

// Issuer returns what others need to check tokens themselves: the issuer's name, and its keys as a JSON Web Key Set.
// Without an authority both are empty.
func (r *Registry) Issuer() (name string, keys []byte) {
	if r.tokens == nil {
		return "", nil
	}
	return r.tokens.Issuer(), r.tokens.KeySet()
}

// Token makes a token of a service account with the lifetime, audience and pod binding that the request asks for. The
// error is 404 if tokens are not served; otherwise see serviceaccount.Tokens.Request.
func (r *Registry) Token(ctx context.Context, q *Request, req *authenticationv1.TokenRequest) (*authenticationv1.TokenRequest, error) {
	if err := r.authorizeAs(ctx, "create", q); err != nil {
		return nil, err
	}
	if r.tokens == nil {
		return nil, apierrors.NewNotFound(api.ServiceAccounts.GR(), q.Name+"/token")
	}
	return r.tokens.Request(ctx, q.User, q.Namespace, q.Name, req)
}

var errNoTokens = apierrors.NewUnauthorized("tokens are not served")

// Authenticate returns the user of a join token, or of a service account's token as long as the account and the pod
// exist. The error is 401 if the token is not valid.
func (r *Registry) Authenticate(ctx context.Context, token string) (User, error) {
	if t, err := bootstrap.Parse(token); err == nil {
		return r.authenticateJoin(ctx, t)
	}
	if r.tokens == nil {
		return User{}, errNoTokens
	}
	return r.tokens.Authenticate(ctx, token, r.tokens.Issuer())
}

// authenticateFor is Authenticate for a token that was presented for audience.
func (r *Registry) authenticateFor(ctx context.Context, token, audience string) (User, error) {
	if r.tokens == nil {
		return User{}, errNoTokens
	}
	return r.tokens.Authenticate(ctx, token, audience)
}

// reader reads objects for requests that are already authorised.
type reader struct{ *Registry }

// Read implements serviceaccount.Reader.
func (r reader) Read(ctx context.Context, kind *api.Kind, namespace, name string) (api.Object, error) {
	e, err := r.read(ctx, kind, namespace, name)
	if err != nil {
		return nil, err
	}
	return e.Object(), nil
}
