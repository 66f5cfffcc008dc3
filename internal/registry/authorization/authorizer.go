package authorization

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"minik8s/internal/api"
	"minik8s/internal/bootstrap"
)

// Attributes describe a request to be judged.
type Attributes struct {
	User User
	// Verb is get, list, watch, create, update, patch, delete, deletecollection or impersonate. If Path is set, it is
	// the HTTP method in lower case.
	Verb string
	// Kind is the kind of the request; nil if it is about Path.
	Kind *api.Kind
	// View is the form of Kind that is asked for; nil: its own.
	View *api.Kind
	Path string
	// Sub is the subresource, empty for the object itself.
	Sub string
	// Below is what follows a subresource that leads further (proxy), with its first slash, escaped as it was sent.
	Below string
	// Namespace is empty for all namespaces, and for kinds without one; Name is empty for a collection.
	Namespace, Name string
	Fields          fields.Selector // for a list or watch
}

// Reader reads the objects on which rights depend: those of nodes depend on pods.
type Reader interface {
	// Known returns an object, also one that was created a moment ago; nil if it does not exist.
	Known(ctx context.Context, kind *api.Kind, namespace, name string) (api.Object, error)
	// InNamespace returns the objects of a namespace from the cache, which may lag behind the store.
	InNamespace(kind *api.Kind, namespace string) iter.Seq[api.Object]
	// Annotation returns an annotation of an object without a namespace from the cache; empty if there is none.
	Annotation(kind *api.Kind, name, key string) string
	// Current waits until the objects are those of this moment.
	Current(ctx context.Context) error
}

// Authorizer decides who may do what.
type Authorizer struct {
	kinds   *api.Table
	objects Reader
}

// New returns an authorizer for the kinds of a table.
func New(kinds *api.Table, objects Reader) *Authorizer {
	return &Authorizer{kinds: kinds, objects: objects}
}

// Authorize refuses (403) what a user may not do. It reads nothing but which node each pod is on, and whose each node's
// name is, so that a refusal
// does not reveal which objects exist. If that read fails, it returns the error of the read.
func (a *Authorizer) Authorize(ctx context.Context, q Attributes) error {
	err := a.judge(ctx, q)
	if finer, ok := throughProxy(q); ok && apierrors.IsForbidden(err) && a.judge(ctx, finer) == nil {
		return nil
	}
	return err
}

func (a *Authorizer) judge(ctx context.Context, q Attributes) error {
	u := q.User
	switch {
	case slices.Contains(u.Groups, GroupMasters):
		return nil
	case slices.Contains(u.Groups, GroupAuthenticated) && anyoneMay(q):
		return nil
	case slices.Contains(u.Groups, bootstrap.GroupMasters) && strings.HasPrefix(u.Name, bootstrap.User("")) && becoming.allows(q):
		return nil
	case slices.Contains(u.Groups, GroupNodes) && comparing.allows(q):
		return nil
	case slices.Contains(u.Groups, GroupNodes) && (q.Kind != nil || strings.HasPrefix(q.Path, imagesPath)):
		return a.authorizeNode(ctx, q)
	case q.Kind == nil:
	case slices.Contains(u.Groups, GroupServiceAccounts):
		return a.authorizeServiceAccount(q)
	case slices.Contains(u.Groups, GroupBootstrappers) && asking.allows(q):
		return nil
	}
	if partMay(q) {
		return nil
	}
	return Forbidden(q, "")
}

func partMay(q Attributes) bool {
	return slices.ContainsFunc(partRules[q.User.Name], func(r rule) bool { return r.allows(q) })
}

// Forbidden returns the refusal (403) of a request, with a reason, which may be empty.
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

// authorizeServiceAccount lets a pod's processes read their own namespace, except secrets. They may not change
// anything, nor use logs or streams of any pod. What an extension API server needs beside that is in extensions.go.
func (a *Authorizer) authorizeServiceAccount(q Attributes) error {
	own := q.Namespace != "" && slices.Contains(q.User.Groups, GroupServiceAccounts+":"+q.Namespace)
	object := q.Sub == "" || q.Sub == api.StatusSubresource || q.Sub == api.ScaleSubresource
	if own && object && q.Kind.Namespaced && q.Kind != api.Secrets && !slices.Contains(measured.groups, q.Kind.Group) && slices.Contains(reading, q.Verb) {
		return nil
	}
	if readsTrust(q) || delegating.allows(q) && a.servesGroup(q.User) || partMay(q) {
		return nil
	}
	return Forbidden(q, "a service account may only read its own namespace, and no secrets")
}

// authorizeNode lets a kubelet use its own Node and Lease, and the pods bound to its node, and read what leads to Services
// and whom NetworkPolicies are about.
// An object that is being created has no name in the request yet, unless it is applied; admission applies the same limits
// to it.
func (a *Authorizer) authorizeNode(ctx context.Context, q Attributes) error {
	node, ok := NodeOf(q.User)
	if !ok {
		return Forbidden(q, "a node's user name is "+nodeUserPrefix+" and the name of its node")
	}
	if key := machineKey(q.User); key != "" {
		others := func() bool {
			owner := a.objects.Annotation(api.Nodes, node, api.MachineKeyAnnotation)
			return owner != "" && owner != key
		}
		if others() { // unless the name was given free a moment ago
			if err := a.objects.Current(ctx); err != nil {
				return err
			}
			if others() {
				return Forbidden(q, api.OtherMachine(node))
			}
		}
	}
	switch q.Kind { // what a node may have of these depends on objects that may have been written a moment ago
	case nil, api.ConfigMaps, api.Secrets, api.ServiceAccounts:
		if err := a.objects.Current(ctx); err != nil {
			return err
		}
	}
	if q.Kind == nil {
		return a.authorizeImage(q, node)
	}
	read := q.Sub == "" && slices.Contains(reading, q.Verb)
	change := slices.Contains(changing, q.Verb)
	switch q.Kind {
	case api.Nodes:
		if q.View == api.Peers && read { // of the other machines, what a node needs to reach them
			return nil
		}
		own := named(q) == node && (read || (q.Sub == "" || q.Sub == api.StatusSubresource) && change)
		if q.View == nil && (own || q.Verb == "create" && q.Sub == "") {
			return nil
		}
		return Forbidden(q, "a node may only use its own Node, and read all machines as peers.minik8s.io")
	case api.Leases:
		own := q.Name == node && (change || q.Verb == "get" || q.Verb == "delete") || (q.Name == "" || q.Name == node) && q.Verb == "create"
		if q.Namespace == corev1.NamespaceNodeLease && own && q.Sub == "" {
			return nil
		}
		return Forbidden(q, "a node may only use its own Lease in "+corev1.NamespaceNodeLease)
	case api.CertificateSigningRequests:
		if asking.allows(q) {
			return nil
		}
	case api.Events:
		if recording.allows(q) {
			return nil
		}
	case api.ConfigMaps, api.Secrets:
		if read && (a.used(node, q) || q.Kind == api.Secrets && a.certificate(q)) {
			return nil
		}
		return Forbidden(q, "no pod on this node uses it")
	case api.ServiceAccounts:
		get, token := q.Sub == "" && q.Verb == "get", q.Sub == "token" && q.Verb == "create"
		if (get || token) && a.used(node, q) {
			return nil
		}
		return Forbidden(q, "no pod on this node uses it")
	case api.Pods:
		if q.View == api.PodAddresses && read { // of the other nodes' pods, what NetworkPolicies need
			return nil
		}
		if q.View == nil {
			return a.authorizeNodePod(ctx, q, node)
		}
	case api.Services, api.EndpointSlices, // for the variables of its pods, and its proxy
		api.DNSes, api.Ingresses, api.IngressClasses, // for its DNS and its gateway
		api.NetworkPolicies, api.Namespaces: // for what its pods let in, from whom
		if read {
			return nil
		}
	}
	return Forbidden(q, "")
}

// NotHere is also the answer for a pod that does not exist, so that a node does not learn the names of other nodes'
// pods.
const NotHere = "no pod of that name is on this node"

func (a *Authorizer) authorizeNodePod(ctx context.Context, q Attributes, node string) error {
	several := q.Sub == "" && (q.Verb == "list" || q.Verb == "watch")
	if several && q.Fields != nil {
		if v, ok := q.Fields.RequiresExactMatch("spec.nodeName"); ok && v == node {
			return nil
		}
	}
	name := named(q)
	switch {
	case several && (name == "" || q.Namespace == ""):
		return Forbidden(q, "a node may only list pods with the field selector spec.nodeName="+node)
	case several, q.Sub == "" && (q.Verb == "get" || q.Verb == "delete"),
		q.Sub == api.StatusSubresource && slices.Contains(changing, q.Verb), q.Sub == "eviction" && q.Verb == "create":
		obj, err := a.objects.Known(ctx, api.Pods, q.Namespace, name)
		if err != nil {
			return err
		}
		if pod, ok := obj.(*corev1.Pod); ok && pod.Spec.NodeName == node {
			return nil
		}
	}
	return Forbidden(q, NotHere)
}

// named is the name of the one object that a request is about; empty if there may be several. A list or watch names it by
// the field selector metadata.name.
func named(q Attributes) string {
	name := q.Name
	if name == "" && q.Fields != nil {
		name, _ = q.Fields.RequiresExactMatch("metadata.name")
	}
	return name
}

// certificate reports whether an Ingress names the Secret as that of a certificate: every node's gateway answers with it.
func (a *Authorizer) certificate(q Attributes) bool {
	name := named(q)
	if name == "" || q.Namespace == "" {
		return false
	}
	for obj := range a.objects.InNamespace(api.Ingresses, q.Namespace) {
		for _, tls := range obj.(*networkingv1.Ingress).Spec.TLS {
			if tls.SecretName == name {
				return true
			}
		}
	}
	return false
}

// used reports whether a pod of the node refers to the object, so that its kubelet may read it.
func (a *Authorizer) used(node string, q Attributes) bool {
	name := named(q)
	if name == "" || q.Namespace == "" {
		return false
	}
	for obj := range a.objects.InNamespace(api.Pods, q.Namespace) {
		if p := obj.(*corev1.Pod); p.Spec.NodeName == node && refers(p, q.Kind, name) {
			return true
		}
	}
	return false
}
