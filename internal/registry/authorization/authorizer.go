package authorization

import (
	"context"
	"fmt"
	"iter"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"minik8s/internal/api"
)

// Attributes are what a request is judged by.
type Attributes struct {
	User User
	// Verb is get, list, watch, create, update, patch, delete, deletecollection or impersonate; of a Path it is
	// the method in small letters.
	Verb string
	// Kind is what it is about; nil if it is about Path.
	Kind *api.Kind
	Path string
	// Sub is the subresource, empty for the object itself.
	Sub string
	// Namespace is empty for all of them, and for kinds without one; Name for a collection.
	Namespace, Name string
	Fields          fields.Selector // of a list or watch
}

// Pods are what the rights of nodes depend on.
type Pods interface {
	// Pod is a pod in its newest version; nil if there is none.
	Pod(ctx context.Context, namespace, name string) (*corev1.Pod, error)
	// InNamespace are the pods of a namespace, as far as is known here.
	InNamespace(namespace string) iter.Seq[*corev1.Pod]
}

// Authorizer says who may do what.
type Authorizer struct {
	kinds *api.Table
	pods  Pods
}

// New is an authorizer for the kinds of a table.
func New(kinds *api.Table, pods Pods) *Authorizer { return &Authorizer{kinds: kinds, pods: pods} }

// Authorize refuses (403) what a user may not do. It reads nothing but whose pods are where, so that a refusal does
// not tell what there is.
func (a *Authorizer) Authorize(ctx context.Context, q Attributes) error {
	u := q.User
	switch {
	case slices.Contains(u.Groups, GroupMasters):
		return nil
	case slices.Contains(u.Groups, GroupAuthenticated) && anyoneMay(q):
		return nil
	case q.Kind == nil:
	case slices.Contains(u.Groups, GroupNodes):
		return a.authorizeNode(ctx, q)
	case slices.Contains(u.Groups, GroupServiceAccounts):
		return authorizeServiceAccount(q)
	}
	for _, rule := range partRules[u.Name] {
		if rule.allows(q) {
			return nil
		}
	}
	return Forbidden(q, "")
}

// Forbidden is the refusal of a request, with the reason, which may be empty.
func Forbidden(q Attributes, why string) error {
	var gr schema.GroupResource
	msg := fmt.Sprintf("User %q cannot %s path %q", q.User.Name, q.Verb, q.Path)
	if q.Kind != nil {
		gr = q.Kind.GR()
		resource := q.Kind.Plural
		if q.Sub != "" {
			resource += "/" + q.Sub
		}
		msg = fmt.Sprintf("User %q cannot %s resource %q in API group %q", q.User.Name, q.Verb, resource, q.Kind.Group)
		if q.Kind.Namespaced && q.Namespace != "" {
			msg += fmt.Sprintf(" in the namespace %q", q.Namespace)
		}
	}
	if why != "" {
		msg += ": " + why
	}
	err := apierrors.NewForbidden(gr, q.Name, fmt.Errorf("%s", msg))
	if q.Kind == nil {
		err.ErrStatus.Message = "forbidden: " + msg
	}
	return err
}

// authorizeServiceAccount: what runs in a pod may read its own namespace, but for the secrets. It may
// change nothing, and cannot read what others' processes say.
func authorizeServiceAccount(q Attributes) error {
	own := q.Namespace != "" && slices.Contains(q.User.Groups, GroupServiceAccounts+":"+q.Namespace)
	object := q.Sub == "" || q.Sub == "status" || q.Sub == api.ScaleSubresource
	if own && object && q.Kind.Namespaced && q.Kind != api.Secrets && slices.Contains(reading, q.Verb) {
		return nil
	}
	return Forbidden(q, "a service account may only read its own namespace, and no secrets")
}

// authorizeNode: a kubelet touches its own Node and Lease, and the pods bound to it. What has no name yet,
// as it is being created, admission holds to the same.
func (a *Authorizer) authorizeNode(ctx context.Context, q Attributes) error {
	node, _ := NodeOf(q.User)
	read := q.Sub == "" && slices.Contains(reading, q.Verb)
	change := slices.Contains(changing, q.Verb) || q.Verb == "get"
	switch q.Kind {
	case api.Nodes:
		own := q.Name == node && (q.Sub == "" || q.Sub == "status") && change
		if read || own || q.Verb == "create" && q.Sub == "" {
			return nil
		}
		return Forbidden(q, "a node may only change its own Node")
	case api.Leases:
		own := q.Name == node && (change || q.Verb == "delete") || q.Name == "" && q.Verb == "create"
		if q.Namespace == corev1.NamespaceNodeLease && own && q.Sub == "" {
			return nil
		}
		return Forbidden(q, "a node may only use its own Lease in "+corev1.NamespaceNodeLease)
	case api.Events:
		if recording.allows(q) {
			return nil
		}
	case api.ConfigMaps, api.Secrets, api.ServiceAccounts:
		token := q.Kind == api.ServiceAccounts && q.Sub == "token" && q.Verb == "create"
		if (read || token) && a.used(node, q) {
			return nil
		}
		return Forbidden(q, "no pod on this node uses it")
	case api.Pods:
		return a.authorizeNodePod(ctx, q, node)
	case api.Namespaces:
		if read {
			return nil
		}
	}
	return Forbidden(q, "")
}

// NotHere is also said of a pod that does not exist: a node is told of no others' names.
const NotHere = "no pod of that name is on this node"

func (a *Authorizer) authorizeNodePod(ctx context.Context, q Attributes, node string) error {
	switch {
	case q.Sub == "" && (q.Verb == "list" || q.Verb == "watch"):
		if q.Fields != nil {
			if v, ok := q.Fields.RequiresExactMatch("spec.nodeName"); ok && v == node {
				return nil
			}
		}
		return Forbidden(q, "a node may only list pods with the field selector spec.nodeName="+node)
	case q.Sub == "" && (q.Verb == "get" || q.Verb == "delete"), q.Sub == "status" && slices.Contains(changing, q.Verb):
		pod, err := a.pods.Pod(ctx, q.Namespace, q.Name)
		if err != nil {
			return err
		}
		if pod != nil && pod.Spec.NodeName == node {
			return nil
		}
	}
	return Forbidden(q, NotHere)
}

// used says whether a pod of the node names the object, so that its kubelet may read it. A list or watch
// names one by its namespace and the field selector metadata.name.
func (a *Authorizer) used(node string, q Attributes) bool {
	name := q.Name
	if name == "" && q.Fields != nil {
		name, _ = q.Fields.RequiresExactMatch("metadata.name")
	}
	if name == "" || q.Namespace == "" {
		return false
	}
	for p := range a.pods.InNamespace(q.Namespace) {
		if p.Spec.NodeName == node && refers(p, q.Kind, name) {
			return true
		}
	}
	return false
}
