package review

import (
	"context"
	"errors"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"minik8s/internal/api"
	"minik8s/internal/registry"
	"minik8s/internal/registry/serviceaccount"
	"minik8s/internal/tokens"
)

// Self answers a SelfSubjectReview: who the user is.
func Self(_ context.Context, _ registry.Objects, q *registry.Request, obj api.Object) error {
	obj.(*authenticationv1.SelfSubjectReview).Status.UserInfo = userInfo(q.User)
	return nil
}

func userInfo(u registry.User) authenticationv1.UserInfo {
	info := authenticationv1.UserInfo{Username: u.Name, UID: u.UID, Groups: u.Groups}
	for key, values := range u.Extra {
		if info.Extra == nil {
			info.Extra = map[string]authenticationv1.ExtraValue{}
		}
		info.Extra[key] = values
	}
	return info
}

// Token answers a TokenReview: the user of a token that is valid for one of the requested audiences, or for the API
// server's own if none is requested. Without an authority no token is valid. The error is 400 without a token, or that
// of reading what the token is bound to.
func Token(a *tokens.Authority) func(context.Context, registry.Objects, *registry.Request, api.Object) error {
	return func(ctx context.Context, o registry.Objects, _ *registry.Request, obj api.Object) error {
		r := obj.(*authenticationv1.TokenReview)
		r.Status = authenticationv1.TokenReviewStatus{}
		if r.Spec.Token == "" {
			return apierrors.NewBadRequest("token is required for TokenReview in authentication")
		}
		check := serviceaccount.New(a, o)
		audiences := r.Spec.Audiences
		if len(audiences) == 0 && check.Issuer() != "" {
			audiences = []string{check.Issuer()}
		}
		for _, audience := range audiences {
			user, err := check.Authenticate(ctx, r.Spec.Token, audience)
			switch {
			case err == nil:
				r.Status.Authenticated, r.Status.Error = true, ""
				r.Status.User = userInfo(user)
				if len(r.Spec.Audiences) > 0 {
					r.Status.Audiences = append(r.Status.Audiences, audience)
				}
			case !apierrors.IsUnauthorized(err):
				return err
			case !r.Status.Authenticated:
				r.Status.Error = err.Error()
			}
		}
		return nil
	}
}

// SelfAccess answers a SelfSubjectAccessReview: may the user do this. The errors are 422 and those of reading what the
// rules ask for.
func SelfAccess(ctx context.Context, o registry.Objects, q *registry.Request, obj api.Object) (err error) {
	r := obj.(*authorizationv1.SelfSubjectAccessReview)
	r.Status, err = access(ctx, o, q.Kind, q.User, r.Spec.ResourceAttributes, r.Spec.NonResourceAttributes)
	return err
}

// Access answers a SubjectAccessReview: may another user do this. The errors are those of SelfAccess.
func Access(ctx context.Context, o registry.Objects, q *registry.Request, obj api.Object) error {
	r := obj.(*authorizationv1.SubjectAccessReview)
	return subject(ctx, o, q.Kind, &r.Spec, &r.Status)
}

// LocalAccess is Access in the namespace of the path.
func LocalAccess(ctx context.Context, o registry.Objects, q *registry.Request, obj api.Object) error {
	r := obj.(*authorizationv1.LocalSubjectAccessReview)
	if r.Spec.ResourceAttributes == nil || r.Spec.ResourceAttributes.Namespace != q.Namespace {
		return registry.Invalid(q.Kind, "", field.ErrorList{field.Invalid(field.NewPath("spec", "resourceAttributes", "namespace"), "",
			"must be the namespace of the path, "+q.Namespace)})
	}
	r.Namespace = q.Namespace
	return subject(ctx, o, q.Kind, &r.Spec, &r.Status)
}

// SelfRules answers a SelfSubjectRulesReview: what the user may do in a namespace. The error is 400 without one.
func SelfRules(_ context.Context, o registry.Objects, q *registry.Request, obj api.Object) error {
	r := obj.(*authorizationv1.SelfSubjectRulesReview)
	if r.Spec.Namespace == "" {
		return apierrors.NewBadRequest("no namespace on request")
	}
	r.Status = o.Authorizer().RulesOf(q.User, r.Spec.Namespace)
	return nil
}

func subject(ctx context.Context, o registry.Objects, kind *api.Kind, spec *authorizationv1.SubjectAccessReviewSpec, status *authorizationv1.SubjectAccessReviewStatus) error {
	if spec.User == "" && len(spec.Groups) == 0 {
		return registry.Invalid(kind, "", field.ErrorList{field.Invalid(field.NewPath("spec", "user"), spec.User, "at least one of user or group must be specified")})
	}
	user := registry.User{Name: spec.User, UID: spec.UID, Groups: spec.Groups}
	var err error
	*status, err = access(ctx, o, kind, user, spec.ResourceAttributes, spec.NonResourceAttributes)
	return err
}

// access reports what the rules decide for a user.
func access(ctx context.Context, o registry.Objects, kind *api.Kind, user registry.User, res *authorizationv1.ResourceAttributes, path *authorizationv1.NonResourceAttributes) (authorizationv1.SubjectAccessReviewStatus, error) {
	status, err := o.Authorizer().Review(ctx, user, res, path)
	if mistake := (*field.Error)(nil); errors.As(err, &mistake) {
		return status, registry.Invalid(kind, "", field.ErrorList{mistake})
	}
	return status, err
}
