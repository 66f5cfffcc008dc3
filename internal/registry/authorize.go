package registry

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"minik8s/internal/api"
	"minik8s/internal/registry/storage"
)

func itoa(n int64) string { return strconv.FormatInt(n, 10) }

// User is who asks. UID and Extra are what is known beside the name, and decide nothing.
type User struct {
	Name, UID string
	Groups    []string
	Extra     map[string][]string
}

// Groups that mean something here; the names are Kubernetes'.
const (
	GroupMasters       = "system:masters" // may do everything
	GroupNodes         = "system:nodes"   // a kubelet; its user is system:node:NAME
	GroupAuthenticated = "system:authenticated"
	nodeUserPrefix     = "system:node:"
	// GroupServiceAccounts is of all service accounts; with ":NAMESPACE", of those of a namespace.
	GroupServiceAccounts = "system:serviceaccounts"
)

// System is the daemon itself.
var System = User{Name: "system:minik8s", Groups: []string{GroupMasters}}

// Part is the identity of a part of the daemon: "scheduler", "kubelet".
func Part(name string, groups ...string) User {
	return User{Name: "system:" + name, Groups: append(groups, GroupAuthenticated)}
}

// NodeUser is the identity of the kubelet of a node.
func NodeUser(node string) User {
	return User{Name: nodeUserPrefix + node, Groups: []string{GroupNodes, GroupAuthenticated}}
}

// nodeOf is the node whose kubelet the user is.
func nodeOf(u User) (node string, ok bool) {
	if !slices.Contains(u.Groups, GroupNodes) {
		return "", false
	}
	return strings.TrimPrefix(u.Name, nodeUserPrefix), true
}

// authorize refuses what a user may not do. It reads nothing but whose pods are where, so that a refusal does
// not tell what there is.
func (r *Registry) authorize(ctx context.Context, q *Request) error {
	u := q.User
	switch {
	case slices.Contains(u.Groups, GroupMasters):
		return nil
	case slices.Contains(u.Groups, GroupAuthenticated) && anyoneMay(q):
		return nil
	case q.Kind == nil:
	case slices.Contains(u.Groups, GroupNodes):
		return r.authorizeNode(ctx, q)
	case slices.Contains(u.Groups, GroupServiceAccounts):
		return authorizeServiceAccount(q)
	}
	for _, rule := range partRules[u.Name] {
		if rule.allows(q) {
			return nil
		}
	}
	return forbidden(q, "")
}

func forbidden(q *Request, why string) error {
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
func authorizeServiceAccount(q *Request) error {
	own := q.Namespace != "" && slices.Contains(q.User.Groups, GroupServiceAccounts+":"+q.Namespace)
	object := q.Sub == "" || q.Sub == "status" || q.Sub == api.ScaleSubresource
	if own && object && q.Kind.Namespaced && q.Kind != api.Secrets && slices.Contains(reading, q.Verb) {
		return nil
	}
	return forbidden(q, "a service account may only read its own namespace, and no secrets")
}

// authorizeNode: a kubelet touches its own Node and Lease, and the pods bound to it. What has no name yet,
// as it is being created, admission holds to the same.
func (r *Registry) authorizeNode(ctx context.Context, q *Request) error {
	node, _ := nodeOf(q.User)
	read := q.Sub == "" && slices.Contains(reading, q.Verb)
	change := slices.Contains(changing, q.Verb) || q.Verb == "get"
	switch q.Kind {
	case api.Nodes:
		own := q.Name == node && (q.Sub == "" || q.Sub == "status") && change
		if read || own || q.Verb == "create" && q.Sub == "" {
			return nil
		}
		return forbidden(q, "a node may only change its own Node")
	case api.Leases:
		own := q.Name == node && (change || q.Verb == "delete") || q.Name == "" && q.Verb == "create"
		if q.Namespace == corev1.NamespaceNodeLease && own && q.Sub == "" {
			return nil
		}
		return forbidden(q, "a node may only use its own Lease in "+corev1.NamespaceNodeLease)
	case api.Events:
		if recording.allows(q) {
			return nil
		}
	case api.ConfigMaps, api.Secrets, api.ServiceAccounts:
		token := q.Kind == api.ServiceAccounts && q.Sub == "token" && q.Verb == "create"
		if (read || token) && r.used(node, q) {
			return nil
		}
		return forbidden(q, "no pod on this node uses it")
	case api.Pods:
		return r.authorizeNodePod(ctx, q, node)
	case api.Namespaces:
		if read {
			return nil
		}
	}
	return forbidden(q, "")
}

// notHere is also said of a pod that does not exist: a node is told of no others' names.
const notHere = "no pod of that name is on this node"

func onNode(obj api.Object, node string) bool {
	p, ok := obj.(*corev1.Pod)
	return ok && p.Spec.NodeName == node
}

func (r *Registry) authorizeNodePod(ctx context.Context, q *Request, node string) error {
	switch {
	case q.Sub == "" && (q.Verb == "list" || q.Verb == "watch"):
		if q.Fields != nil {
			if v, ok := q.Fields.RequiresExactMatch("spec.nodeName"); ok && v == node {
				return nil
			}
		}
		return forbidden(q, "a node may only list pods with the field selector spec.nodeName="+node)
	case q.Sub == "" && (q.Verb == "get" || q.Verb == "delete"), q.Sub == "status" && slices.Contains(changing, q.Verb):
		e := r.cache.Of(api.Pods).Get(storage.KeyOf(api.Pods, q.Namespace, q.Name))
		if e == nil { // it may have been made a moment ago
			if err := r.cache.Current(ctx); err != nil {
				return storage.Error(api.Pods, q.Name, err)
			}
			e = r.cache.Of(api.Pods).Get(storage.KeyOf(api.Pods, q.Namespace, q.Name))
		}
		if e != nil && onNode(e.Object(), node) {
			return nil
		}
	}
	return forbidden(q, notHere)
}

// used says whether a pod of the node names the object, so that its kubelet may read it. A list or watch
// names one by its namespace and the field selector metadata.name.
func (r *Registry) used(node string, q *Request) bool {
	name := q.Name
	if name == "" && q.Fields != nil {
		name, _ = q.Fields.RequiresExactMatch("metadata.name")
	}
	if name == "" || q.Namespace == "" {
		return false
	}
	entries, _ := r.cache.Of(api.Pods).Snapshot(q.Namespace, "")
	for _, e := range entries {
		if p := e.Object().(*corev1.Pod); p.Spec.NodeName == node && refers(p, q.Kind, name) {
			return true
		}
	}
	return false
}

// refers says whether a pod names a ConfigMap, Secret or ServiceAccount anywhere.
func refers(p *corev1.Pod, kind *api.Kind, name string) bool {
	if kind == api.ServiceAccounts {
		return p.Spec.ServiceAccountName == name
	}
	if kind == api.Secrets && slices.ContainsFunc(p.Spec.ImagePullSecrets, func(s corev1.LocalObjectReference) bool { return s.Name == name }) {
		return true
	}
	for _, v := range p.Spec.Volumes {
		if volumeRefers(v, kind, name) {
			return true
		}
	}
	for _, c := range append(slices.Clone(p.Spec.InitContainers), p.Spec.Containers...) {
		if containerRefers(c, kind, name) {
			return true
		}
	}
	return slices.ContainsFunc(p.Spec.EphemeralContainers, func(e corev1.EphemeralContainer) bool {
		return containerRefers(corev1.Container(e.EphemeralContainerCommon), kind, name)
	})
}

func volumeRefers(v corev1.Volume, kind *api.Kind, name string) bool {
	if kind == api.Secrets && v.Secret != nil && v.Secret.SecretName == name ||
		kind == api.ConfigMaps && v.ConfigMap != nil && v.ConfigMap.Name == name {
		return true
	}
	if v.Projected == nil {
		return false
	}
	return slices.ContainsFunc(v.Projected.Sources, func(s corev1.VolumeProjection) bool {
		return kind == api.Secrets && s.Secret != nil && s.Secret.Name == name ||
			kind == api.ConfigMaps && s.ConfigMap != nil && s.ConfigMap.Name == name
	})
}

func containerRefers(c corev1.Container, kind *api.Kind, name string) bool {
	return slices.ContainsFunc(c.EnvFrom, func(e corev1.EnvFromSource) bool {
		return kind == api.Secrets && e.SecretRef != nil && e.SecretRef.Name == name ||
			kind == api.ConfigMaps && e.ConfigMapRef != nil && e.ConfigMapRef.Name == name
	}) || slices.ContainsFunc(c.Env, func(e corev1.EnvVar) bool {
		if e.ValueFrom == nil {
			return false
		}
		return kind == api.Secrets && e.ValueFrom.SecretKeyRef != nil && e.ValueFrom.SecretKeyRef.Name == name ||
			kind == api.ConfigMaps && e.ValueFrom.ConfigMapKeyRef != nil && e.ValueFrom.ConfigMapKeyRef.Name == name
	})
}
