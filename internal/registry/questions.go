package registry

import (
	"context"
	"fmt"
	"slices"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"minik8s/internal/api"
)

// Ask answers a question: an object of one of api.Questions, which comes back with its status filled in. What may
// be asked of oneself anybody may ask whom the API knows.
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
		o.Status = r.rulesOf(q.User, o.Spec.Namespace)
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

// reviewToken says whose a token is, if it is for one of the audiences asked for, or for the API server's own.
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

// reviewAccess asks the rules what they would say to a user.
func (r *Registry) reviewAccess(ctx context.Context, kind *api.Kind, user User, res *authorizationv1.ResourceAttributes, path *authorizationv1.NonResourceAttributes) (authorizationv1.SubjectAccessReviewStatus, error) {
	ask := &Request{User: user}
	switch spec := field.NewPath("spec"); {
	case res != nil && path != nil:
		return authorizationv1.SubjectAccessReviewStatus{}, invalid(kind, "", field.ErrorList{
			field.Invalid(spec.Child("nonResourceAttributes"), "", "cannot be specified in combination with resourceAttributes")})
	case path != nil:
		ask.Verb, ask.Path = path.Verb, path.Path
	case res != nil:
		ask.Verb, ask.Sub, ask.Namespace, ask.Name = res.Verb, res.Subresource, res.Namespace, res.Name
		ask.Kind = r.kindNamed(res.Group, res.Resource)
		if !ask.Kind.Namespaced {
			ask.Namespace = ""
		}
	default:
		return authorizationv1.SubjectAccessReviewStatus{}, invalid(kind, "", field.ErrorList{
			field.Invalid(spec.Child("resourceAttributes"), "", "exactly one of nonResourceAttributes or resourceAttributes must be specified")})
	}
	err := r.authorize(ctx, ask)
	if err == nil {
		return authorizationv1.SubjectAccessReviewStatus{Allowed: true}, nil
	}
	if !apierrors.IsForbidden(err) {
		return authorizationv1.SubjectAccessReviewStatus{}, err
	}
	return authorizationv1.SubjectAccessReviewStatus{Reason: err.Error()}, nil
}

// kindNamed is a kind by group and resource, also one that is not served: rules can speak of it all the same.
func (r *Registry) kindNamed(group, resource string) *api.Kind {
	for _, k := range r.kinds.Served() {
		if k.Group == group && k.Plural == resource {
			if k.View != nil {
				return k.View.Of // by which it is judged
			}
			return k
		}
	}
	return &api.Kind{Group: group, Plural: resource, Kind: resource, Namespaced: true}
}

// rulesOf is what a user may do in a namespace, as far as rules say it; of nodes they do not say it all.
func (r *Registry) rulesOf(u User, namespace string) authorizationv1.SubjectRulesReviewStatus {
	out := authorizationv1.SubjectRulesReviewStatus{ResourceRules: []authorizationv1.ResourceRule{}, NonResourceRules: []authorizationv1.NonResourceRule{}}
	if slices.Contains(u.Groups, GroupMasters) {
		all := []string{"*"}
		out.ResourceRules = append(out.ResourceRules, authorizationv1.ResourceRule{Verbs: all, APIGroups: all, Resources: all})
		out.NonResourceRules = append(out.NonResourceRules, authorizationv1.NonResourceRule{Verbs: all, NonResourceURLs: all})
		return out
	}
	var rules []rule
	if slices.Contains(u.Groups, GroupAuthenticated) {
		rules = append(rules, anyone...)
	}
	switch {
	case slices.Contains(u.Groups, GroupNodes):
		out.Incomplete, out.EvaluationError = true, "what a node may do depends on the pods that are on it"
	case slices.Contains(u.Groups, GroupServiceAccounts):
		if slices.Contains(u.Groups, GroupServiceAccounts+":"+namespace) {
			rules = append(rules, r.readsOwn()...)
		}
	default:
		rules = append(rules, partRules[u.Name]...)
	}
	for _, rule := range rules {
		verbs := rule.verbs
		if verbs == nil {
			verbs = []string{"*"}
		}
		if rule.paths != nil {
			out.NonResourceRules = append(out.NonResourceRules, authorizationv1.NonResourceRule{Verbs: verbs, NonResourceURLs: rule.paths})
			continue
		}
		out.ResourceRules = append(out.ResourceRules, resourceRules(r.kinds, rule, verbs)...)
	}
	return out
}

// resourceRules is a rule as Kubernetes writes it: one for each API group.
func resourceRules(table *api.Table, r rule, verbs []string) []authorizationv1.ResourceRule {
	below := ""
	if r.sub != "" {
		below = "/" + r.sub
	}
	if r.kinds == nil {
		return []authorizationv1.ResourceRule{{Verbs: verbs, APIGroups: []string{"*"}, Resources: []string{"*" + below}}}
	}
	var out []authorizationv1.ResourceRule
	kinds := slices.Clone(r.kinds)
	for _, v := range table.Served() {
		if v.View != nil && slices.Contains(kinds, v.View.Of) {
			kinds = append(kinds, v)
		}
	}
	for _, k := range kinds {
		i := slices.IndexFunc(out, func(have authorizationv1.ResourceRule) bool { return have.APIGroups[0] == k.Group })
		if i < 0 {
			i = len(out)
			out = append(out, authorizationv1.ResourceRule{Verbs: verbs, APIGroups: []string{k.Group}})
		}
		out[i].Resources = append(out[i].Resources, k.Plural+below)
	}
	return out
}

// readsOwn is what a service account may do in its own namespace, as rules.
func (r *Registry) readsOwn() []rule {
	var kinds, status, scaled []*api.Kind
	for _, k := range r.kinds.Stored() {
		if !k.Namespaced || k == api.Secrets {
			continue
		}
		kinds = append(kinds, k)
		if k.Status {
			status = append(status, k)
		}
		if slices.ContainsFunc(k.Subresources, func(s api.Subresource) bool { return s.Name == api.ScaleSubresource }) {
			scaled = append(scaled, k)
		}
	}
	return []rule{may(reading, kinds...), mayBelow("status", []string{"get"}, status...), mayBelow(api.ScaleSubresource, []string{"get"}, scaled...)}
}
