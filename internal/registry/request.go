package registry

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/fields"

	"minik8s/internal/api"
	"minik8s/internal/registry/authorization"
	"minik8s/internal/store"
)

// User is the sender of a request.
type User = authorization.User

// Groups that have a meaning here; the names are Kubernetes'.
const (
	GroupMasters         = authorization.GroupMasters
	GroupNodes           = authorization.GroupNodes
	GroupAuthenticated   = authorization.GroupAuthenticated
	GroupServiceAccounts = authorization.GroupServiceAccounts
)

// KeyExtra is the key of User.Extra with the certs.KeyPin of a kubelet's key.
const KeyExtra = authorization.KeyExtra

// System is the daemon itself.
var System = authorization.System

// Part returns the identity of a part of the daemon: "scheduler", "kubelet".
func Part(name string, groups ...string) User { return authorization.Part(name, groups...) }

// Proxy returns the identity of what leads the traffic to Services on a node, where it has one of its own.
func Proxy() User { return authorization.Proxy() }

// NodeUser returns the identity of a node's kubelet.
func NodeUser(node string) User { return authorization.NodeUser(node) }

// MasterNode returns the identity of a master's own kubelet, whose key has this certs.KeyPin.
func MasterNode(node, keyPin string) User { return authorization.MasterNode(node, keyPin) }

// Request is one operation on the API. The same value goes through authorisation, before anything is read, and then
// through admission: roles, quotas and policies are enforced there and nowhere else.
type Request struct {
	User User
	// Verb is get, list, watch, create, update, patch, delete, deletecollection or impersonate. If Path is set, it is
	// the HTTP method in lower case.
	Verb string
	// Kind is the kind of the request; nil if it is about Path.
	Kind *api.Kind
	Path string
	// View is the kind that the client sees, if that differs from Kind.
	View *api.Kind
	// Sub is the subresource, empty for the object itself.
	Sub string
	// Below is what follows a subresource that leads further (proxy), with its first slash, escaped as it was sent: some
	// rights are for certain paths of a kubelet.
	Below string
	// Namespace is empty for all namespaces, and for kinds without one.
	Namespace string
	// Name is empty for a collection, and therefore for a create: the new object's name is in New.
	Name   string
	Fields fields.Selector // of a list or watch

	// Fence, which may be nil, has to hold in the transaction of whatever the request writes, or it writes nothing.
	Fence *Fence

	// Old and New are the object before and after the change, for admission; nil if there is none.
	Old, New api.Object

	// relied lists what the write requires besides its own key: that the objects admission relied on are unchanged.
	relied []store.Change
	// kept is the second object of New, if it has one; keeps says that it is written, too.
	kept  *Kept
	keeps bool

	// turn is what the request has of turns; nil: nothing.
	turn *held

	passed access // what authorisation has allowed, so that it runs once
}

// access is the part of a request that authorisation judges.
type access struct {
	verb, sub, below, namespace, name, path string
	kind                                    *api.Kind
}

// endTurn lets the next write of the same group go.
func (q *Request) endTurn() {
	if q.turn != nil {
		q.turn.end()
		q.turn = nil
	}
}

func (q *Request) access() access {
	return access{verb: q.Verb, sub: q.Sub, below: q.Below, namespace: q.Namespace, name: q.Name, path: q.Path, kind: q.Kind}
}

// attributes returns what authorisation judges.
func (q *Request) attributes() authorization.Attributes {
	return authorization.Attributes{User: q.User, Verb: q.Verb, Kind: q.Kind, View: q.View, Path: q.Path, Sub: q.Sub, Below: q.Below,
		Namespace: q.Namespace, Name: q.Name, Fields: q.Fields}
}

// Authorize refuses (403) what a user may not do. Every method of Registry that takes a request does so first. Other
// packages call it for things reached through an object that are not objects, such as a container's streams.
func (r *Registry) Authorize(ctx context.Context, q *Request) error {
	if q.passed == q.access() && q.Verb != "" {
		return nil
	}
	if err := r.authorizer.Authorize(ctx, q.attributes()); err != nil {
		return err
	}
	q.passed = q.access()
	return nil
}

// authorizeAs is Authorize for a method that performs verb. A request authorised for another verb is a caller's bug
// (500).
func (r *Registry) authorizeAs(ctx context.Context, verb string, q *Request) error {
	if q.Verb != verb {
		return apierrors.NewInternalError(fmt.Errorf("a request to %s %s was handed on as one to %s", q.Verb, q.Kind, verb))
	}
	if q.View != nil && !q.View.Allows(verb) {
		return apierrors.NewMethodNotSupported(q.View.GR(), verb)
	}
	return r.Authorize(ctx, q)
}

// Own returns a request by the daemon itself; sub is empty for the object itself.
func Own(verb string, kind *api.Kind, namespace, name, sub string) *Request {
	return &Request{User: System, Verb: verb, Kind: kind, Namespace: namespace, Name: name, Sub: sub}
}
