package local

import (
	"context"
	"strconv"

	authenticationv1 "k8s.io/api/authentication/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"

	"minik8s/internal/api"
	"minik8s/internal/client"
	"minik8s/internal/registry"
)

// Client reads and writes as one user.
//
// A part that only one master may run has a client under that master's fence.
type Client struct {
	reg   *registry.Registry
	user  registry.User
	fence *registry.Fence
}

// New is a client that acts as user.
func New(reg *registry.Registry, user registry.User) *Client { return &Client{reg: reg, user: user} }

// Under returns the same client with all its writes under a fence. Reads are not.
func (c *Client) Under(f *registry.Fence) *Client {
	fenced := *c
	fenced.fence = f
	return &fenced
}

var _ client.Interface = (*Client)(nil)

// ask makes a request of the client's user.
func (c *Client) ask(verb string, key client.Key, sub string) *registry.Request {
	q := c.of(verb, key.Kind, key.Namespace, nil)
	q.Sub, q.Name = sub, key.Name
	return q
}

// of is ask for a list: the objects that options select.
func (c *Client) of(verb string, kind *api.Kind, namespace string, f fields.Selector) *registry.Request {
	q := &registry.Request{User: c.user, Fence: c.fence, Verb: verb, Kind: kind, Namespace: namespace, Fields: f}
	if kind.View != nil {
		q.Kind, q.View = kind.View.Of, kind
	}
	return q
}

// Get implements client.Interface.
func (c *Client) Get(ctx context.Context, key client.Key) (api.Object, error) {
	q := c.ask("get", key, "")
	e, err := c.reg.Get(ctx, q)
	return object(q, e, err)
}

// object is the answer to a request for an object.
func object(q *registry.Request, e *registry.Entry, err error) (api.Object, error) {
	if err != nil {
		return nil, err
	}
	return q.Shown(e), nil
}

func listOptions(o client.ListOptions) registry.ListOptions {
	return registry.ListOptions{Labels: o.Labels, Fields: o.Fields, Limit: o.Limit, Continue: o.Continue}
}

// list is the answer to a request for a list.
func list(q *registry.Request, l *registry.List, err error) (*client.List, error) {
	if err != nil {
		return nil, err
	}
	out := &client.List{Kind: q.Seen(), ResourceVersion: strconv.FormatInt(l.Revision, 10), Continue: l.Continue,
		Remaining: l.Remaining, Items: make([]api.Object, len(l.Entries))}
	for i, e := range l.Entries {
		out.Items[i] = q.Shown(e)
	}
	return out, nil
}

// List implements client.Interface.
func (c *Client) List(ctx context.Context, kind *api.Kind, opts client.ListOptions) (*client.List, error) {
	q := c.of("list", kind, opts.Namespace, opts.Fields)
	l, err := c.reg.List(ctx, q, listOptions(opts))
	return list(q, l, err)
}

// Create implements client.Interface.
func (c *Client) Create(ctx context.Context, obj api.Object, opts client.WriteOptions) (api.Object, error) {
	kind, err := client.KindFor(obj)
	if err == nil {
		err = client.CheckCreate(opts)
	}
	if err != nil {
		return nil, err
	}
	q := c.of("create", kind, client.Home(kind, obj.GetNamespace()), nil)
	e, err := c.reg.Create(ctx, q, copyOf(obj), write(opts))
	return object(q, e, err)
}

// Update implements client.Interface.
func (c *Client) Update(ctx context.Context, obj api.Object, opts client.WriteOptions) (api.Object, error) {
	kind, err := client.KindFor(obj)
	if err != nil {
		return nil, err
	}
	key := client.Key{Kind: kind, Namespace: client.Home(kind, obj.GetNamespace()), Name: obj.GetName()}
	q := c.ask("update", key, opts.Subresource)
	e, err := c.reg.Update(ctx, q, copyOf(obj), write(opts))
	return object(q, e, err)
}

// copyOf copies the caller's object, because the registry keeps and changes what it gets.
func copyOf(obj api.Object) api.Object { return obj.DeepCopyObject().(api.Object) }

func write(o client.WriteOptions) registry.WriteOptions {
	return registry.WriteOptions{DryRun: o.DryRun, Manager: o.FieldManager}
}

// Patch implements client.Interface.
func (c *Client) Patch(ctx context.Context, key client.Key, p client.Patch, opts client.WriteOptions) (api.Object, error) {
	q := c.ask("patch", key, opts.Subresource)
	e, _, err := c.reg.Patch(ctx, q,
		registry.Patch{Type: p.Type, Data: p.Data, Validation: opts.FieldValidation, Force: p.Force}, write(opts))
	return object(q, e, err)
}

// Delete implements client.Interface.
func (c *Client) Delete(ctx context.Context, key client.Key, opts *metav1.DeleteOptions) (api.Object, error) {
	q := c.ask("delete", key, "")
	e, _, err := c.reg.Delete(ctx, q, opts)
	return object(q, e, err)
}

// DeleteCollection implements client.Interface.
func (c *Client) DeleteCollection(ctx context.Context, kind *api.Kind, opts client.ListOptions, del *metav1.DeleteOptions) (*client.List, error) {
	q := c.of("deletecollection", kind, opts.Namespace, opts.Fields)
	l, err := c.reg.DeleteCollection(ctx, q, listOptions(opts), del)
	return list(q, l, err)
}

// Bind implements client.Interface.
func (c *Client) Bind(ctx context.Context, namespace, pod string, uid types.UID, node string) error {
	b := &corev1.Binding{ObjectMeta: metav1.ObjectMeta{UID: uid}, Target: corev1.ObjectReference{Kind: "Node", Name: node}}
	_, err := c.reg.Act(ctx, c.ask("create", client.Key{Kind: api.Pods, Namespace: namespace, Name: pod}, "binding"), b, registry.WriteOptions{})
	return err
}

// Scale implements client.Interface.
func (c *Client) Scale(ctx context.Context, key client.Key) (*autoscalingv1.Scale, error) {
	q := c.ask("get", key, api.ScaleSubresource)
	form := c.scaleOf(q)
	if form == nil {
		return nil, client.NotScaled(key)
	}
	e, err := c.reg.Get(ctx, q)
	if err != nil {
		return nil, err
	}
	return form.Of(e.Object()).(*autoscalingv1.Scale), nil
}

// SetScale implements client.Interface.
func (c *Client) SetScale(ctx context.Context, key client.Key, scale *autoscalingv1.Scale) (*autoscalingv1.Scale, error) {
	q := c.ask("update", key, api.ScaleSubresource)
	form := c.scaleOf(q)
	if form == nil {
		return nil, client.NotScaled(key)
	}
	e, err := c.reg.Update(ctx, q, scale.DeepCopy(), registry.WriteOptions{})
	if err != nil {
		return nil, err
	}
	return form.Of(e.Object()).(*autoscalingv1.Scale), nil
}

// scaleOf is the form of a kind's objects as Scales; nil if they have none.
func (c *Client) scaleOf(q *registry.Request) *registry.Form {
	if q.Kind.Subresource(api.ScaleSubresource) == nil {
		return nil
	}
	return c.reg.Strategy(q.Kind).FormOf(api.ScaleSubresource)
}

// Token implements client.Interface.
func (c *Client) Token(ctx context.Context, namespace, serviceAccount string, req *authenticationv1.TokenRequest) (*authenticationv1.TokenRequest, error) {
	made, err := c.reg.Act(ctx, c.ask("create", client.Key{Kind: api.ServiceAccounts, Namespace: namespace, Name: serviceAccount}, "token"), req, registry.WriteOptions{})
	if err != nil {
		return nil, err
	}
	return made.(*authenticationv1.TokenRequest), nil
}
