package authorization

import (
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"

	"minik8s/internal/api"
)

// trustName is the ConfigMap in kube-system from which an extension API server learns whom to believe. Nothing in it is
// secret. Upstream a role of the name of extension-apiserver-authentication-reader allows reading it.
const trustName = "extension-apiserver-authentication"

func readsTrust(q Attributes) bool {
	return q.Kind == api.ConfigMaps && q.Sub == "" && q.Namespace == metav1.NamespaceSystem && named(q) == trustName && slices.Contains(reading, q.Verb)
}

// delegating is what an extension API server asks: whose a token is, and whether that user may do this. Upstream the
// cluster role system:auth-delegator allows it.
var delegating = may([]string{"create"}, api.TokenReviews, api.SubjectAccessReviews)

// servesGroup reports whether a service account is of a namespace with a Service that an APIService names: whoever may
// make an APIService lets that Service's pods speak for a group, and so ask as one that does.
func (a *Authorizer) servesGroup(u User) bool {
	for obj := range a.objects.InNamespace(api.APIServices, "") {
		s := obj.(*apiregistrationv1.APIService).Spec.Service
		if s != nil && slices.Contains(u.Groups, GroupServiceAccounts+":"+s.Namespace) && strings.HasPrefix(u.Name, "system:serviceaccount:"+s.Namespace+":") {
			return true
		}
	}
	return false
}
