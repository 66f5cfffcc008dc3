// Package local is client.Interface in the process of the master: calls of the registry's functions,
// no HTTP, no encoding. The objects it returns are the cache's own, shared by all readers.
//
// roles makes one for each part, with the part's identity, so that what a part may write is checked as
// it would be over the wire. It holds no state.
package local

import (
	"context"
	"strconv"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"minik8s/internal/api"
	"minik8s/internal/client"
	"minik8s/internal/registry"
)

// Client reads and writes as one user.
type Client struct {
	reg  *registry.Registry
	user registry.User
}

// New is a client that acts as user.
func New(reg *registry.Registry, user registry.User) *Client { return &Client{reg: reg, user: user} }

var _ client.Interface = (*Client)(nil)

// Get implements client.Interface.
func (c *Client) Get(ctx context.Context, key client.Key) (api.Object, error) {
	return object(c.reg.Get(ctx, c.user, key.Kind, key.Namespace, key.Name))
}

func object(e *registry.Entry, err error) (api.Object, error) {
	if err != nil {
		return nil, err
	}
	return e.Object(), nil
}

func listOptions(o client.ListOptions) registry.ListOptions {
	return registry.ListOptions{Namespace: o.Namespace, Labels: o.Labels, Fields: o.Fields, Limit: o.Limit, Continue: o.Continue}
}

func list(l *registry.List, err error) (*client.List, error) {
	if err != nil {
		return nil, err
	}
	out := &client.List{Kind: l.Kind, ResourceVersion: strconv.FormatInt(l.Revision, 10), Continue: l.Continue,
		Remaining: l.Remaining, Items: make([]api.Object, len(l.Entries))}
	for i, e := range l.Entries {
		out.Items[i] = e.Object()
	}
	return out, nil
}

// List implements client.Interface.
func (c *Client) List(ctx context.Context, kind *api.Kind, opts client.ListOptions) (*client.List, error) {
	return list(c.reg.List(ctx, c.user, kind, listOptions(opts)))
}

// Create implements client.Interface.
func (c *Client) Create(ctx context.Context, obj api.Object, opts client.WriteOptions) (api.Object, error) {
	return object(c.reg.Create(ctx, c.user, api.KindOf(obj), obj.GetNamespace(), copyOf(obj), write(opts)))
}

// Update implements client.Interface.
func (c *Client) Update(ctx context.Context, obj api.Object, opts client.WriteOptions) (api.Object, error) {
	return object(c.reg.Update(ctx, c.user, api.KindOf(obj), obj.GetNamespace(), copyOf(obj), opts.Subresource, write(opts)))
}

// copyOf keeps the caller's object out of the registry, which takes over what it is given.
func copyOf(obj api.Object) api.Object { return obj.DeepCopyObject().(api.Object) }

func write(o client.WriteOptions) registry.WriteOptions {
	return registry.WriteOptions{DryRun: o.DryRun}
}

// Patch implements client.Interface.
func (c *Client) Patch(ctx context.Context, key client.Key, p client.Patch, opts client.WriteOptions) (api.Object, error) {
	return object(c.reg.Patch(ctx, c.user, key.Kind, key.Namespace, key.Name, opts.Subresource, p.Type, p.Data,
		opts.FieldValidation, write(opts)))
}

// Delete implements client.Interface.
func (c *Client) Delete(ctx context.Context, key client.Key, opts *metav1.DeleteOptions) (api.Object, error) {
	e, _, err := c.reg.Delete(ctx, c.user, key.Kind, key.Namespace, key.Name, opts)
	return object(e, err)
}

// DeleteCollection implements client.Interface.
func (c *Client) DeleteCollection(ctx context.Context, kind *api.Kind, opts client.ListOptions, del *metav1.DeleteOptions) (*client.List, error) {
	return list(c.reg.DeleteCollection(ctx, c.user, kind, listOptions(opts), del))
}

// Bind implements client.Interface.
func (c *Client) Bind(ctx context.Context, namespace, pod string, uid types.UID, node string) error {
	_, err := c.reg.Bind(ctx, c.user, namespace, pod, registry.Binding{Node: node, UID: uid}, registry.WriteOptions{})
	return err
}

// Token implements client.Interface.
func (c *Client) Token(ctx context.Context, namespace, serviceAccount string, req *authenticationv1.TokenRequest) (*authenticationv1.TokenRequest, error) {
	return c.reg.Token(ctx, c.user, namespace, serviceAccount, req)
}
