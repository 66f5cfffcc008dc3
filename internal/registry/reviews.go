package registry

import (
	"context"
	"errors"
	"fmt"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"minik8s/internal/api"
)

// Ask answers a review: an object of one of api.Questions, which is returned with its status filled in. Every
// authenticated user may ask about itself. The errors are 400, 403 and 422.
func (r *Registry) Ask(ctx context.Context, q *Request, obj api.Object) (api.Object, error) {
	if err := r.authorizeAs(ctx, "create", q); err != nil {
		return nil, err
	}
	obj.SetManagedFields(nil)
	obj.GetObjectKind().SetGroupVersionKind(q.Kind.GVK())
	switch o := obj.(type) {
	case *authenticationv1.SelfSubjectReview:
		o.Status.UserInfo = userInfo(q.User)
	case *authenticationv1.TokenReview:
		return o, r.reviewToken(ctx, o)
	case *authorizationv1.SelfSubjectAccessReview:
		var err error
		o.Status, err = r.reviewAccess(ctx, q.Kind, q.User, o.Spec.ResourceAttributes, o.Spec.NonResourceAttributes)
		return o, err
	case *authorizationv1.SubjectAccessReview:
		return o, r.reviewSubject(ctx, q.Kind, &o.Spec, &o.Status)
	case *authorizationv1.LocalSubjectAccessReview:
		if o.Spec.ResourceAttributes == nil || o.Spec.ResourceAttributes.Namespace != q.Namespace {
			return nil, invalid(q.Kind, "", field.ErrorList{field.Invalid(field.NewPath("spec", "resourceAttributes", "namespace"), "",
				"must be the namespace of the path, "+q.Namespace)})
		}
		o.Namespace = q.Namespace
		return o, r.reviewSubject(ctx, q.Kind, &o.Spec, &o.Status)
	case *authorizationv1.SelfSubjectRulesReview:
		if o.Spec.Namespace == "" {
			return nil, apierrors.NewBadRequest("no namespace on request")
		}
		o.Status = r.authorizer.RulesOf(q.User, o.Spec.Namespace)
	default:
		return nil, apierrors.NewInternalError(fmt.Errorf("a %s is no question", q.Kind.Kind))
	}
	return obj, nil
}

func userInfo(u User) authenticationv1.UserInfo {
	info := authenticationv1.UserInfo{Username: u.Name, UID: u.UID, Groups: u.Groups}
	for key, values := range u.Extra {
		if info.Extra == nil {
			info.Extra = map[string]authenticationv1.ExtraValue{}
		}
		info.Extra[key] = values
	}
	return info
}

// reviewToken fills in the user of a token that is valid for one of the requested audiences, or for the API server's
// own if none is requested.
func (r *Registry) reviewToken(ctx context.Context, o *authenticationv1.TokenReview) error {
	o.Status = authenticationv1.TokenReviewStatus{}
	if o.Spec.Token == "" {
		return apierrors.NewBadRequest("token is required for TokenReview in authentication")
	}
	audiences := o.Spec.Audiences
	if len(audiences) == 0 && r.tokens != nil {
		audiences = []string{r.tokens.Issuer()}
	}
	for _, a := range audiences {
		user, err := r.authenticateFor(ctx, o.Spec.Token, a)
		switch {
		case err == nil:
			o.Status.Authenticated, o.Status.Error = true, ""
			o.Status.User = userInfo(user)
			if len(o.Spec.Audiences) > 0 {
				o.Status.Audiences = append(o.Status.Audiences, a)
			}
		case !apierrors.IsUnauthorized(err):
			return err
		case !o.Status.Authenticated:
			o.Status.Error = err.Error()
		}
	}
	return nil
}

func (r *Registry) reviewSubject(ctx context.Context, kind *api.Kind, spec *authorizationv1.SubjectAccessReviewSpec, status *authorizationv1.SubjectAccessReviewStatus) error {
	if spec.User == "" && len(spec.Groups) == 0 {
		return invalid(kind, "", field.ErrorList{field.Invalid(field.NewPath("spec", "user"), spec.User, "at least one of user or group must be specified")})
	}
	user := User{Name: spec.User, UID: spec.UID, Groups: spec.Groups}
	var err error
	*status, err = r.reviewAccess(ctx, kind, user, spec.ResourceAttributes, spec.NonResourceAttributes)
	return err
}

// reviewAccess reports what the rules decide for a user.
func (r *Registry) reviewAccess(ctx context.Context, kind *api.Kind, user User, res *authorizationv1.ResourceAttributes, path *authorizationv1.NonResourceAttributes) (authorizationv1.SubjectAccessReviewStatus, error) {
	status, err := r.authorizer.Review(ctx, user, res, path)
	if mistake := (*field.Error)(nil); errors.As(err, &mistake) {
		return status, invalid(kind, "", field.ErrorList{mistake})
	}
	return status, err
}
