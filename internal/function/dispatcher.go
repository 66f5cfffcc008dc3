package function

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"minik8s/internal/api"
	"minik8s/internal/api/minik8s"
	"minik8s/internal/client"
	"minik8s/internal/controller/loop"
	"minik8s/internal/function/plan"
)

var (
	// errGone means that a function has been deleted.
	errGone = errors.New("the function has been deleted")
	// errStopped means that this master leads no more, or ends.
	errStopped = errors.New("the master that had the call has stopped; call again")
)

// dispatcher brings calls to instances, and keeps as many as they ask for.
type dispatcher struct {
	client client.Interface
	log    *slog.Logger
	scale  *loop.Loop
	set    func(key loop.Key) *appsv1.ReplicaSet                  // the function's present one; nil: there is none yet
	exists func(key loop.Key) bool                                // whether there is such a function, as far as is known here
	stored func(ctx context.Context, q question) bool             // whether a question's is in the store, or may be: it does not answer
	make   func(ctx context.Context, key loop.Key, n int32) error // makes the set, where there is none; what follows is a change of it
	opened func(key loop.Key)                                     // is told when an instance begins to take calls
	// accept makes the object of a call that nobody waits for, and has it carried out; if done is given it is under way, and its result comes there.
	accept func(ctx context.Context, q question, caller string, began metav1.Time, done <-chan result) error

	mu      sync.Mutex
	pools   map[loop.Key]*pool
	changed chan struct{} // closed when a pool is new or has a changed function, and when there will be none any more
	stopped bool
}

// Connections to instances: kept for the next call, as many as calls are under way.
const (
	dialLimit = 2 * time.Second
	idleConns = 64 // to one instance
	connTime  = 30 * time.Second
)

func newDispatcher(c client.Interface, log *slog.Logger, set func(loop.Key) *appsv1.ReplicaSet, exists func(loop.Key) bool, opened func(loop.Key)) *dispatcher {
	d := &dispatcher{client: c, log: log, set: set, exists: exists, stored: func(_ context.Context, q question) bool { return exists(q.function) }, opened: opened, pools: map[loop.Key]*pool{}, changed: make(chan struct{})}
	d.scale = loop.New("function-scale", log, d.rescale)
	return d
}

// pool is a function's; of one that is not known it is nil.
func (d *dispatcher) pool(key loop.Key) *pool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.pools[key]
}

// ended reports whether this master has no calls any more.
func (d *dispatcher) ended() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.stopped
}

// await waits until a question's function is known here. It returns false when ctx ends first, or the dispatcher has stopped.
func (d *dispatcher) await(ctx context.Context, q question) bool {
	for {
		d.mu.Lock()
		p, changed, stopped := d.pools[q.function], d.changed, d.stopped
		d.mu.Unlock()
		if p != nil && p.knows(q) {
			return true
		}
		if stopped {
			return false
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return false
		}
	}
}

// follow takes over a function as it is now. known is called with its pool, if there was none.
func (d *dispatcher) follow(fn *minik8s.Function, version string, known func(*pool)) *pool {
	key := loop.Key{Namespace: fn.Namespace, Name: fn.Name}
	now := time.Now()
	d.mu.Lock()
	p := d.pools[key]
	anew := p == nil
	if anew {
		p = &pool{instances: map[types.UID]*instance{}, since: now, seen: now, idle: now, opened: func() { d.opened(key) }}
		if d.stopped {
			d.mu.Unlock()
			p.end(errStopped)
			return p
		}
		d.pools[key] = p
	}
	if p.follow(fn, version) || anew {
		close(d.changed)
		d.changed = make(chan struct{})
	}
	d.mu.Unlock()
	if anew {
		known(p)
	}
	d.scale.Add(key)
	return p
}

// drop forgets a function that has been deleted.
func (d *dispatcher) drop(key loop.Key) {
	d.mu.Lock()
	p := d.pools[key]
	delete(d.pools, key)
	d.mu.Unlock()
	if p != nil {
		p.end(errGone)
	}
	forgetMetrics(key)
}

// stop ends all waiting.
func (d *dispatcher) stop() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.stopped {
		d.stopped = true
		close(d.changed)
	}
	for key, p := range d.pools {
		p.end(errStopped)
		delete(d.pools, key)
	}
}

// pod takes over a change of a pod of a function.
func (d *dispatcher) pod(key loop.Key, old, now *corev1.Pod) {
	if p := d.pool(key); p != nil {
		p.pod(old, now, look)
	}
}

// The pauses between looks whether an instance accepts connections.
const (
	minLook = time.Millisecond
	maxLook = 500 * time.Millisecond
)

// look waits until an address accepts a connection.
func look(ctx context.Context, address string, accepts func()) {
	dialer := &net.Dialer{Timeout: dialLimit}
	for pause := minLook; ; pause = min(2*pause, maxLook) {
		c, err := dialer.DialContext(ctx, "tcp", address)
		if err == nil {
			c.Close() //nolint:errcheck // nothing was sent
			accepts()
			return
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return
		}
	}
}

// rescale asks for as many instances as the load does. While there is any to look after it comes again.
func (d *dispatcher) rescale(ctx context.Context, key loop.Key) error {
	p, set := d.pool(key), d.set(key)
	if p == nil {
		return nil
	}
	if set == nil {
		if want, _ := p.desired(time.Now(), 0); want > 0 {
			d.scale.AddAfter(key, plan.Tick) // if it was not made, since the image is not known yet
			return d.make(ctx, key, want)
		}
		return nil
	}
	have := int32(1)
	if set.Spec.Replicas != nil {
		have = *set.Spec.Replicas
	}
	want, again := p.desired(time.Now(), have)
	if again || want != have {
		d.scale.AddAfter(key, plan.Tick)
	}
	if want < have {
		var err error
		if want, err = d.choose(ctx, key, p, have, want); err != nil {
			return err
		}
	} else {
		p.stay()
	}
	if want == have {
		return nil
	}
	at := client.Key{Kind: api.ReplicaSets, Namespace: set.Namespace, Name: set.Name}
	scale, err := d.client.Scale(ctx, at)
	if apierrors.IsNotFound(err) {
		return nil // another one comes
	}
	if err != nil {
		return err
	}
	scale = scale.DeepCopy()
	scale.Spec.Replicas = want
	_, err = d.client.SetScale(ctx, at, scale)
	return err
}

// choose says which instances go when there are to be fewer: those without a call. It returns how many then are left. An instance that has a call keeps
// it to its end, however long it has been: it goes another time.
func (d *dispatcher) choose(ctx context.Context, key loop.Key, p *pool, have, want int32) (int32, error) {
	may, mark, unmark := p.leave(int(have-want), int(have))
	for _, x := range []struct {
		pods []string
		cost any
	}{{mark, "-1"}, {unmark, nil}} {
		body, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": map[string]any{corev1.PodDeletionCost: x.cost}}})
		if err != nil {
			return have, err
		}
		for _, pod := range x.pods {
			_, err := d.client.Patch(ctx, client.Key{Kind: api.Pods, Namespace: key.Namespace, Name: pod}, client.Patch{Type: types.MergePatchType, Data: body}, client.WriteOptions{})
			if err != nil && !apierrors.IsNotFound(err) {
				return have, err
			}
		}
	}
	return have - int32(may), nil
}
