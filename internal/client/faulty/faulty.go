// Package faulty wraps a client and injects the faults of networks and crashes: calls fail before or after they took
// effect, are delayed, writes are repeated, and watches break. Tests use it to show that a part is correct all the
// same. The faults follow from a seed.
package faulty

import (
	"context"
	"math/rand"
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

// Rates are how often each fault happens, from 0 to 1.
type Rates struct {
	// Drop fails a call that was never made; Lose fails one that took effect.
	Drop, Lose float64
	// Conflict answers a write with 409 without making it.
	Conflict float64
	// Repeat makes a write twice and returns the second answer, as a client that retries does.
	Repeat float64
	// Delay delays a call by up to MaxDelay.
	Delay    float64
	MaxDelay time.Duration
	// Break ends a watch before an event. The initial objects are never cut off, like a list; Drop may fail them as a
	// whole. Otherwise a watch of many objects would never get past them.
	Break float64
}

// Client is a client with faults.
type Client struct {
	client.Interface
	rates Rates
	mu    sync.Mutex
	rng   *rand.Rand
	off   bool
}

// New wraps a client; the same seed gives the same random numbers.
func New(c client.Interface, rates Rates, seed int64) *Client {
	return &Client{Interface: c, rates: rates, rng: rand.New(rand.NewSource(seed))}
}

// Heal turns the faults off, so that a test can wait for things to settle.
func (c *Client) Heal() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.off = true
}

func (c *Client) happens(rate float64) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return !c.off && rate > 0 && c.rng.Float64() < rate
}

func (c *Client) pause(ctx context.Context) {
	if !c.happens(c.rates.Delay) || c.rates.MaxDelay == 0 {
		return
	}
	c.mu.Lock()
	d := time.Duration(c.rng.Int63n(int64(c.rates.MaxDelay)))
	c.mu.Unlock()
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}

var errLost = apierrors.NewServiceUnavailable("an injected fault")

// read is a call that changes nothing.
func read[T any](ctx context.Context, c *Client, call func() (T, error)) (T, error) {
	c.pause(ctx)
	if c.happens(c.rates.Drop) {
		var none T
		return none, errLost
	}
	return call()
}

// write is a call that changes something.
func write[T any](ctx context.Context, c *Client, kind *api.Kind, name string, call func() (T, error)) (T, error) {
	var none T
	c.pause(ctx)
	switch {
	case c.happens(c.rates.Drop):
		return none, errLost
	case c.happens(c.rates.Conflict):
		return none, apierrors.NewConflict(kind.GR(), name, errLost)
	}
	out, err := call()
	if c.happens(c.rates.Repeat) {
		out, err = call()
	}
	if c.happens(c.rates.Lose) {
		return none, errLost
	}
	return out, err
}

// Get implements client.Interface.
func (c *Client) Get(ctx context.Context, key client.Key) (api.Object, error) {
	return read(ctx, c, func() (api.Object, error) { return c.Interface.Get(ctx, key) })
}

// List implements client.Interface.
func (c *Client) List(ctx context.Context, kind *api.Kind, opts client.ListOptions) (*client.List, error) {
	return read(ctx, c, func() (*client.List, error) { return c.Interface.List(ctx, kind, opts) })
}

// Create implements client.Interface.
func (c *Client) Create(ctx context.Context, obj api.Object, opts client.WriteOptions) (api.Object, error) {
	return write(ctx, c, api.KindOf(obj), obj.GetName(), func() (api.Object, error) { return c.Interface.Create(ctx, obj, opts) })
}

// Update implements client.Interface.
func (c *Client) Update(ctx context.Context, obj api.Object, opts client.WriteOptions) (api.Object, error) {
	return write(ctx, c, api.KindOf(obj), obj.GetName(), func() (api.Object, error) { return c.Interface.Update(ctx, obj, opts) })
}

// Patch implements client.Interface.
func (c *Client) Patch(ctx context.Context, key client.Key, p client.Patch, opts client.WriteOptions) (api.Object, error) {
	return write(ctx, c, key.Kind, key.Name, func() (api.Object, error) { return c.Interface.Patch(ctx, key, p, opts) })
}

// Delete implements client.Interface.
func (c *Client) Delete(ctx context.Context, key client.Key, opts *metav1.DeleteOptions) (api.Object, error) {
	return write(ctx, c, key.Kind, key.Name, func() (api.Object, error) { return c.Interface.Delete(ctx, key, opts) })
}

// Bind implements client.Interface.
func (c *Client) Bind(ctx context.Context, namespace, pod string, uid types.UID, node string) error {
	_, err := write(ctx, c, api.Pods, pod, func() (struct{}, error) {
		return struct{}{}, c.Interface.Bind(ctx, namespace, pod, uid, node)
	})
	return err
}

// Scale implements client.Interface.
func (c *Client) Scale(ctx context.Context, key client.Key) (*autoscalingv1.Scale, error) {
	return read(ctx, c, func() (*autoscalingv1.Scale, error) { return c.Interface.Scale(ctx, key) })
}

// SetScale implements client.Interface.
func (c *Client) SetScale(ctx context.Context, key client.Key, scale *autoscalingv1.Scale) (*autoscalingv1.Scale, error) {
	return write(ctx, c, key.Kind, key.Name, func() (*autoscalingv1.Scale, error) { return c.Interface.SetScale(ctx, key, scale) })
}

// Token implements client.Interface.
func (c *Client) Token(ctx context.Context, namespace, serviceAccount string, req *authenticationv1.TokenRequest) (*authenticationv1.TokenRequest, error) {
	return write(ctx, c, api.ServiceAccounts, serviceAccount, func() (*authenticationv1.TokenRequest, error) {
		return c.Interface.Token(ctx, namespace, serviceAccount, req)
	})
}

// Watch implements client.Interface; a broken watch ends without an error, as a closed connection does.
func (c *Client) Watch(ctx context.Context, kind *api.Kind, opts client.WatchOptions) (client.Watcher, error) {
	in, err := read(ctx, c, func() (client.Watcher, error) { return c.Interface.Watch(ctx, kind, opts) })
	if err != nil {
		return nil, err
	}
	w := &watcher{Watcher: in, out: make(chan client.Event), initial: opts.ResourceVersion == "" && opts.Bookmarks}
	go w.run(ctx, c)
	return w, nil
}

type watcher struct {
	client.Watcher
	out     chan client.Event
	initial bool // the initial objects are still being sent
}

// Events implements client.Watcher.
func (w *watcher) Events() <-chan client.Event { return w.out }

func (w *watcher) run(ctx context.Context, c *Client) {
	defer close(w.out)
	defer w.Stop()
	for e := range w.Watcher.Events() {
		c.pause(ctx)
		if !w.initial && c.happens(c.rates.Break) {
			return
		}
		w.initial = w.initial && !e.InitialEnd
		select {
		case w.out <- e:
		case <-ctx.Done():
			return
		}
	}
}
