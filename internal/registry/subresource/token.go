package subresource

import (
	"context"

	authenticationv1 "k8s.io/api/authentication/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"minik8s/internal/registry"
	"minik8s/internal/registry/serviceaccount"
	"minik8s/internal/tokens"
)

// Token makes a token of a service account with the lifetime, audience and pod binding that the request asks for:
// serviceaccounts/token. The token is only in the answer and is not stored. The errors are those
// of serviceaccount.Tokens.Request.
func Token(a *tokens.Authority) registry.Subresource {
	return registry.Subresource{Action: &registry.Action{
		Body: func() runtime.Object { return &authenticationv1.TokenRequest{} },
		Do: func(ctx context.Context, o registry.Objects, q *registry.Request, body runtime.Object, _ registry.WriteOptions) (runtime.Object, error) {
			made, err := serviceaccount.New(a, o).Request(ctx, q.User, q.Namespace, q.Name, body.(*authenticationv1.TokenRequest))
			if err != nil {
				return nil, err
			}
			return made, nil
		},
	}}
}
