package registry

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/fields"

	"minik8s/internal/api"
)

func itoa(n int64) string { return strconv.FormatInt(n, 10) }

// User is who asks.
type User struct {
	Name   string
	Groups []string
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

// Access is what a user wants to do.
type Access struct {
	Verb            string // get, list, watch, create, update, patch, delete, deletecollection
	Kind            *api.Kind
	Sub             string
	Namespace, Name string
	Fields          fields.Selector // of a list or watch
	Old             api.Object      // of a change
}

// Authorize refuses what a user may not do, for what is reached through an object but is none: the streams
// of a pod's containers.
func (r *Registry) Authorize(u User, a Access) error { return r.authorize(u, a) }

// authorize refuses what a user may not do.
func (r *Registry) authorize(u User, a Access) error {
	switch {
	case slices.Contains(u.Groups, GroupMasters):
		return nil
	case slices.Contains(u.Groups, GroupNodes):
		return r.authorizeNode(u, a)
	case slices.Contains(u.Groups, GroupServiceAccounts):
		return authorizeServiceAccount(u, a)
	}
	for _, rule := range partRules[u.Name] {
		if rule.allows(a) {
			return nil
		}
	}
	return forbidden(u, a, "")
}

func forbidden(u User, a Access, why string) error {
	resource := a.Kind.Plural
	if a.Sub != "" {
		resource += "/" + a.Sub
	}
	msg := fmt.Sprintf("User %q cannot %s resource %q in API group %q", u.Name, a.Verb, resource, a.Kind.Group)
	if a.Kind.Namespaced && a.Namespace != "" {
		msg += fmt.Sprintf(" in the namespace %q", a.Namespace)
	}
	if why != "" {
		msg += ": " + why
	}
	return apierrors.NewForbidden(a.Kind.GR(), a.Name, fmt.Errorf("%s", msg))
}

// authorizeNode: a kubelet touches its own Node and Lease, and the pods bound to it.
func (r *Registry) authorizeNode(u User, a Access) error {
	node := strings.TrimPrefix(u.Name, nodeUserPrefix)
	read := slices.Contains(reading, a.Verb)
	switch a.Kind {
	case api.Nodes:
		if read || a.Name == node && a.Verb != "delete" && a.Verb != "deletecollection" {
			return nil
		}
		return forbidden(u, a, "a node may only change its own Node")
	case api.Leases:
		if a.Namespace == corev1.NamespaceNodeLease && a.Name == node && a.Verb != "deletecollection" {
			return nil
		}
		return forbidden(u, a, "a node may only use its own Lease in "+corev1.NamespaceNodeLease)
	case api.Events:
		if a.Verb == "create" || a.Verb == "update" || a.Verb == "patch" {
			return nil
		}
	case api.ConfigMaps, api.Secrets, api.ServiceAccounts:
		token := a.Kind == api.ServiceAccounts && a.Sub == "token" && a.Verb == "create"
		if (read || token) && r.used(node, a) {
			return nil
		}
		return forbidden(u, a, "no pod on this node uses it")
	case api.Pods:
		return r.authorizeNodePod(u, a, node)
	case api.Namespaces:
		if read {
			return nil
		}
	}
	return forbidden(u, a, "")
}

func (r *Registry) authorizeNodePod(u User, a Access, node string) error {
	mine := func(obj api.Object) bool {
		p, ok := obj.(*corev1.Pod)
		return ok && p.Spec.NodeName == node
	}
	switch a.Verb {
	case "list", "watch":
		if a.Fields != nil {
			if v, ok := a.Fields.RequiresExactMatch("spec.nodeName"); ok && v == node {
				return nil
			}
		}
		return forbidden(u, a, "a node may only list pods with the field selector spec.nodeName="+node)
	case "get":
		e := r.cache.byRow[api.Pods].get(keyOf(api.Pods, a.Namespace, a.Name))
		if e == nil || mine(e.Object()) {
			return nil // a pod that is not there will be told as such
		}
	case "update", "patch":
		if a.Sub == "status" && mine(a.Old) {
			return nil
		}
	case "delete":
		if mine(a.Old) {
			return nil
		}
	}
	return forbidden(u, a, "the pod is not on this node")
}

// used says whether a pod of the node names the object, so that its kubelet may read it. A list or watch
// names one by its namespace and the field selector metadata.name.
func (r *Registry) used(node string, a Access) bool {
	if a.Name == "" && a.Fields != nil {
		a.Name, _ = a.Fields.RequiresExactMatch("metadata.name")
	}
	if a.Name == "" || a.Namespace == "" {
		return false
	}
	entries, _ := r.cache.snapshot(r.cache.byRow[api.Pods], a.Namespace, "")
	for _, e := range entries {
		if p := e.Object().(*corev1.Pod); p.Spec.NodeName == node && refers(p, a.Kind, a.Name) {
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
	return false
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
