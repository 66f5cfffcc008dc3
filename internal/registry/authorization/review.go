package authorization

import (
	"context"
	"slices"

	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"minik8s/internal/api"
)

// Review reports what the rules decide for a user about an object (res) or a path; exactly one of them must be given.
// The error is a *field.Error if both or neither is given. Any other error means that no decision was possible
// because a pod could not be read.
func (a *Authorizer) Review(ctx context.Context, user User, res *authorizationv1.ResourceAttributes, path *authorizationv1.NonResourceAttributes) (authorizationv1.SubjectAccessReviewStatus, error) {
	ask := Attributes{User: user}
	switch spec := field.NewPath("spec"); {
	case res != nil && path != nil:
		return authorizationv1.SubjectAccessReviewStatus{},
			field.Invalid(spec.Child("nonResourceAttributes"), "", "cannot be specified in combination with resourceAttributes")
	case path != nil:
		ask.Verb, ask.Path = path.Verb, path.Path
	case res != nil:
		ask.Verb, ask.Sub, ask.Namespace, ask.Name = res.Verb, res.Subresource, res.Namespace, res.Name
		ask.Kind = a.kindNamed(res.Group, res.Resource)
		if ask.Kind.View != nil { // as a request for it is judged
			ask.Kind, ask.View = ask.Kind.View.Of, ask.Kind
		}
		if !ask.Kind.Namespaced {
			ask.Namespace = ""
		}
	default:
		return authorizationv1.SubjectAccessReviewStatus{},
			field.Invalid(spec.Child("resourceAttributes"), "", "exactly one of nonResourceAttributes or resourceAttributes must be specified")
	}
	err := a.Authorize(ctx, ask)
	if err == nil {
		return authorizationv1.SubjectAccessReviewStatus{Allowed: true}, nil
	}
	if !apierrors.IsForbidden(err) {
		return authorizationv1.SubjectAccessReviewStatus{}, err
	}
	return authorizationv1.SubjectAccessReviewStatus{Reason: err.Error()}, nil
}

// kindNamed finds a kind by group and resource, the stored one if there are several. It also returns one for a kind that is not served,
// because rules can name that too.
func (a *Authorizer) kindNamed(group, resource string) *api.Kind {
	found := &api.Kind{Group: group, Plural: resource, Kind: resource, Namespaced: true}
	for _, k := range a.kinds.Served() {
		if k.Group != group || k.Plural != resource {
			continue
		}
		if found = k; k.View == nil {
			break
		}
	}
	return found
}

// RulesOf lists what a user may do in a namespace, as far as rules express it. For nodes the list is incomplete.
func (a *Authorizer) RulesOf(u User, namespace string) authorizationv1.SubjectRulesReviewStatus {
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
		rules = append(rules, comparing)
	case slices.Contains(u.Groups, GroupBootstrappers):
		rules = append(rules, asking)
	case slices.Contains(u.Groups, GroupServiceAccounts):
		if slices.Contains(u.Groups, GroupServiceAccounts+":"+namespace) {
			rules = append(rules, a.readsOwn()...)
		}
		if a.servesGroup(u) {
			rules = append(rules, delegating)
		}
		rules = append(rules, partRules[u.Name]...)
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
		out.ResourceRules = append(out.ResourceRules, resourceRules(a.kinds, rule, verbs)...)
	}
	return out
}

// resourceRules returns a rule in Kubernetes' form: one rule for each API group.
func resourceRules(table *api.Table, r rule, verbs []string) []authorizationv1.ResourceRule {
	below := ""
	if r.sub != "" {
		below = "/" + r.sub
	}
	if r.groups != nil {
		return []authorizationv1.ResourceRule{{Verbs: verbs, APIGroups: r.groups, Resources: []string{"*"}}}
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

// readsOwn returns, as rules, what a service account may do in its own namespace.
func (a *Authorizer) readsOwn() []rule {
	var kinds, status, scaled []*api.Kind
	for _, k := range a.kinds.Stored() {
		if !k.Namespaced || k == api.Secrets {
			continue
		}
		kinds = append(kinds, k)
		if k.HasStatus() {
			status = append(status, k)
		}
		if k.Subresource(api.ScaleSubresource) != nil {
			scaled = append(scaled, k)
		}
	}
	return []rule{may(reading, kinds...), mayBelow("status", []string{"get"}, status...), mayBelow(api.ScaleSubresource, []string{"get"}, scaled...)}
}
