package objects

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"minik8s/internal/api"
	"minik8s/internal/client"
)

// Ref names a ConfigMap or a Secret.
type Ref struct {
	Kind            *api.Kind
	Namespace, Name string
}

// Missing is an object, or a key of one, that a pod needs and that does not exist.
type Missing struct {
	Ref Ref
	// Key is empty if the object itself is missing.
	Key string
}

func (e *Missing) Error() string {
	if e.Key != "" {
		return fmt.Sprintf("couldn't find key %s in %s %s/%s", e.Key, e.Ref.Kind.Kind, e.Ref.Namespace, e.Ref.Name)
	}
	return fmt.Sprintf("%s %q not found", strings.ToLower(e.Ref.Kind.Kind), e.Ref.Name)
}

// Manager watches the objects in use.
type Manager struct {
	client  client.Interface
	log     *slog.Logger
	spawn   func(func())
	changed func(user types.UID)

	mu      sync.Mutex
	watched map[Ref]*watchedObject
	uses    map[types.UID][]Ref
}

// watchedObject is one object in use.
type watchedObject struct {
	users map[types.UID]bool
	stop  context.CancelFunc
	// known: obj is the API's object, or nil if it does not exist. While known is false, err is why it cannot be
	// read, or nil before the first answer.
	known bool
	obj   api.Object
	err   error
	// updated is closed and replaced when known, obj or err changes.
	updated chan struct{}
}

// New makes an empty Manager. spawn runs its goroutines; changed is called for each user of an object that has
// changed, without a lock held.
func New(c client.Interface, log *slog.Logger, spawn func(func()), changed func(types.UID)) *Manager {
	return &Manager{client: c, log: log, spawn: spawn, changed: changed, watched: map[Ref]*watchedObject{}, uses: map[types.UID][]Ref{}}
}

// Use sets the objects that a pod uses. Objects that no pod uses any more are dropped. The watches end with ctx at
// the latest.
func (k *Manager) Use(ctx context.Context, user types.UID, refs []Ref) {
	k.mu.Lock()
	defer k.mu.Unlock()
	before := k.uses[user]
	delete(k.uses, user)
	if len(refs) > 0 {
		k.uses[user] = refs
	}
	for _, ref := range refs {
		b := k.watched[ref]
		if b == nil {
			own, cancel := context.WithCancel(ctx)
			b = &watchedObject{users: map[types.UID]bool{}, stop: cancel, updated: make(chan struct{})}
			k.watched[ref] = b
			k.spawn(func() { k.follow(own, ref, b) })
		}
		b.users[user] = true
	}
	for _, ref := range before {
		b := k.watched[ref]
		if b == nil || contains(refs, ref) {
			continue
		}
		delete(b.users, user)
		if len(b.users) == 0 {
			b.stop()
			delete(k.watched, ref)
		}
	}
}

func contains(refs []Ref, ref Ref) bool {
	for _, r := range refs {
		if r == ref {
			return true
		}
	}
	return false
}

// Drop is Use of nothing.
func (k *Manager) Drop(user types.UID) { k.Use(context.Background(), user, nil) }

// Get returns an object in use as it is now; it waits for the first answer. The object is shared. The error is a
// *Missing if it does not exist.
func (k *Manager) Get(ctx context.Context, ref Ref) (api.Object, error) {
	for {
		k.mu.Lock()
		b := k.watched[ref]
		if b == nil {
			k.mu.Unlock()
			return nil, fmt.Errorf("%s %q is not in use", ref.Kind.Kind, ref.Name)
		}
		known, obj, err, updated := b.known, b.obj, b.err, b.updated
		k.mu.Unlock()
		switch {
		case known && obj == nil:
			return nil, &Missing{Ref: ref}
		case known:
			return obj, nil
		case err != nil:
			return nil, fmt.Errorf("%s %q cannot be read: %w", strings.ToLower(ref.Kind.Kind), ref.Name, err)
		}
		select {
		case <-updated:
		case <-ctx.Done():
			return nil, fmt.Errorf("%s %q: %w", strings.ToLower(ref.Kind.Kind), ref.Name, ctx.Err())
		}
	}
}

// set stores the API's object, and notifies the users if they may have got another answer before.
func (k *Manager) set(b *watchedObject, obj api.Object) {
	k.mu.Lock()
	answered := b.known || b.err != nil
	b.known, b.obj, b.err = true, obj, nil
	close(b.updated)
	b.updated = make(chan struct{})
	var users []types.UID
	if answered {
		for u := range b.users {
			users = append(users, u)
		}
	}
	k.mu.Unlock()
	for _, u := range users {
		k.changed(u)
	}
}

// fail stores why an object cannot be read, unless it is known, which may still be true. Get returns the error, and
// its caller retries.
func (k *Manager) fail(b *watchedObject, err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if !b.known {
		b.err = err
		close(b.updated)
		b.updated = make(chan struct{})
	}
}

// immutable reports whether an object is marked as immutable.
func immutable(obj api.Object) bool {
	switch o := obj.(type) {
	case *corev1.ConfigMap:
		return o.Immutable != nil && *o.Immutable
	case *corev1.Secret:
		return o.Immutable != nil && *o.Immutable
	}
	return false
}
