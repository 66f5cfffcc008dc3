package fallback

import (
	"context"
	"log/slog"
	"sync"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"minik8s/internal/api"
	"minik8s/internal/client"
)

// Config is what a Client is made from. All must be set.
type Config struct {
	// First is the one that is preferred; nil while it is not there.
	First func() client.Interface
	// Well reports whether the first is of use. It is asked now and then while the second is used, and may take a second.
	Well func() bool
	// Second is the other one; nil while it is not there.
	Second func() client.Interface
	// Leave is called when the second is of no use either, so that it may try another way.
	Leave func()
	Log   *slog.Logger
}

// Client is a client.Interface over two.
type Client struct {
	cfg Config
	ctx context.Context // ends the search for the first

	mu      sync.Mutex
	second  bool          // the second is used
	changed chan struct{} // closed when another one is used
	looking bool          // look runs
}

var _ client.Interface = (*Client)(nil)

// every is how often it is looked whether the first is of use again.
const every = time.Second

// New makes a Client that begins with the first. What it does in the background ends with ctx.
func New(ctx context.Context, cfg Config) *Client {
	return &Client{cfg: cfg, ctx: ctx, changed: make(chan struct{})}
}

// Useless says that the one that is used does not do what it is asked.
func (c *Client) Useless() {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.second:
		c.cfg.Leave()
	case c.cfg.Second() != nil:
		c.change(true)
	}
}

// change changes which one is used; mu is held.
func (c *Client) change(second bool) {
	c.second = second
	close(c.changed)
	c.changed = make(chan struct{})
	if !second {
		c.cfg.Log.Info("this machine's own API is asked again")
		return
	}
	c.cfg.Log.Warn("this machine's own API is of no use now, another master's is asked")
	if !c.looking {
		c.looking = true
		go c.look()
	}
}

// look goes back to the first as soon as that is of use.
func (c *Client) look() {
	t := time.NewTicker(every)
	defer t.Stop()
	for {
		select {
		case <-t.C:
		case <-c.ctx.Done():
			return
		}
		if !c.cfg.Well() {
			continue
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		c.looking = false
		c.change(false)
		return
	}
}

var errNeither = apierrors.NewServiceUnavailable("this machine's own API is not there, and no other master's is known")

// pick returns which one is used now, and a channel that is closed when it is another one.
func (c *Client) pick() (client.Interface, <-chan struct{}, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.second {
		if first := c.cfg.First(); first != nil {
			return first, c.changed, nil
		}
	}
	second := c.cfg.Second()
	if second == nil {
		return nil, nil, errNeither
	}
	if !c.second {
		c.change(true)
	}
	return second, c.changed, nil
}

// with makes a call to the one that is used.
func with[T any](c *Client, call func(client.Interface) (T, error)) (T, error) {
	one, _, err := c.pick()
	if err != nil {
		var none T
		return none, err
	}
	return call(one)
}

// Get implements client.Interface.
func (c *Client) Get(ctx context.Context, key client.Key) (api.Object, error) {
	return with(c, func(i client.Interface) (api.Object, error) { return i.Get(ctx, key) })
}

// List implements client.Interface.
func (c *Client) List(ctx context.Context, kind *api.Kind, opts client.ListOptions) (*client.List, error) {
	return with(c, func(i client.Interface) (*client.List, error) { return i.List(ctx, kind, opts) })
}

// Watch implements client.Interface. The watch ends when the other one is used.
func (c *Client) Watch(ctx context.Context, kind *api.Kind, opts client.WatchOptions) (client.Watcher, error) {
	one, changed, err := c.pick()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	w, err := one.Watch(ctx, kind, opts)
	if err != nil {
		cancel()
		return nil, err
	}
	go func() {
		select {
		case <-changed:
			cancel()
		case <-ctx.Done():
		}
	}()
	return &watcher{w, cancel}, nil
}

// watcher is a watch whose context ends with it.
type watcher struct {
	client.Watcher
	cancel context.CancelFunc
}

// Stop implements client.Watcher.
func (w *watcher) Stop() {
	w.cancel()
	w.Watcher.Stop()
}

// Create implements client.Interface.
func (c *Client) Create(ctx context.Context, obj api.Object, opts client.WriteOptions) (api.Object, error) {
	return with(c, func(i client.Interface) (api.Object, error) { return i.Create(ctx, obj, opts) })
}

// Update implements client.Interface.
func (c *Client) Update(ctx context.Context, obj api.Object, opts client.WriteOptions) (api.Object, error) {
	return with(c, func(i client.Interface) (api.Object, error) { return i.Update(ctx, obj, opts) })
}

// Patch implements client.Interface.
func (c *Client) Patch(ctx context.Context, key client.Key, patch client.Patch, opts client.WriteOptions) (api.Object, error) {
	return with(c, func(i client.Interface) (api.Object, error) { return i.Patch(ctx, key, patch, opts) })
}

// Delete implements client.Interface.
func (c *Client) Delete(ctx context.Context, key client.Key, opts *metav1.DeleteOptions) (api.Object, error) {
	return with(c, func(i client.Interface) (api.Object, error) { return i.Delete(ctx, key, opts) })
}

// DeleteCollection implements client.Interface.
func (c *Client) DeleteCollection(ctx context.Context, kind *api.Kind, opts client.ListOptions, del *metav1.DeleteOptions) (*client.List, error) {
	return with(c, func(i client.Interface) (*client.List, error) { return i.DeleteCollection(ctx, kind, opts, del) })
}

// Bind implements client.Interface.
func (c *Client) Bind(ctx context.Context, namespace, pod string, uid types.UID, node string) error {
	one, _, err := c.pick()
	if err != nil {
		return err
	}
	return one.Bind(ctx, namespace, pod, uid, node)
}

// Scale implements client.Interface.
func (c *Client) Scale(ctx context.Context, key client.Key) (*autoscalingv1.Scale, error) {
	return with(c, func(i client.Interface) (*autoscalingv1.Scale, error) { return i.Scale(ctx, key) })
}

// SetScale implements client.Interface.
func (c *Client) SetScale(ctx context.Context, key client.Key, scale *autoscalingv1.Scale) (*autoscalingv1.Scale, error) {
	return with(c, func(i client.Interface) (*autoscalingv1.Scale, error) { return i.SetScale(ctx, key, scale) })
}

// Token implements client.Interface.
func (c *Client) Token(ctx context.Context, namespace, serviceAccount string, req *authenticationv1.TokenRequest) (*authenticationv1.TokenRequest, error) {
	return with(c, func(i client.Interface) (*authenticationv1.TokenRequest, error) {
		return i.Token(ctx, namespace, serviceAccount, req)
	})
}
