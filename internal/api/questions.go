package api

import (
	"strings"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// The kinds that are questions: a client creates an object with a question in it and gets it back with the answer. They
// are never stored, so they are not in Kinds.
var (
	TokenReviews = question("authentication.k8s.io", "TokenReview", false, func() Object { return &authenticationv1.TokenReview{} })
	// SelfSubjectReviews answer who the client is.
	SelfSubjectReviews = question("authentication.k8s.io", "SelfSubjectReview", false, func() Object { return &authenticationv1.SelfSubjectReview{} })

	SubjectAccessReviews      = question("authorization.k8s.io", "SubjectAccessReview", false, func() Object { return &authorizationv1.SubjectAccessReview{} })
	LocalSubjectAccessReviews = question("authorization.k8s.io", "LocalSubjectAccessReview", true, func() Object { return &authorizationv1.LocalSubjectAccessReview{} })
	SelfSubjectAccessReviews  = question("authorization.k8s.io", "SelfSubjectAccessReview", false, func() Object { return &authorizationv1.SelfSubjectAccessReview{} })
	SelfSubjectRulesReviews   = question("authorization.k8s.io", "SelfSubjectRulesReview", false, func() Object { return &authorizationv1.SelfSubjectRulesReview{} })
)

// Questions lists these kinds.
var Questions = []*Kind{TokenReviews, SelfSubjectReviews, SubjectAccessReviews, LocalSubjectAccessReviews, SelfSubjectAccessReviews, SelfSubjectRulesReviews}

func question(group, kind string, namespaced bool, make func() Object) *Kind {
	singular := strings.ToLower(kind)
	return &Kind{Group: group, Version: "v1", Kind: kind, Plural: singular + "s", Singular: singular, Namespaced: namespaced,
		Verbs: []string{"create"}, Asked: true, New: make, NewList: func() runtime.Object { return nil }}
}
