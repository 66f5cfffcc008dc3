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

// Keeper keeps the objects in use.
type Keeper struct {
	client  client.Interface
	log     *slog.Logger
	spawn   func(func())
	changed func(user types.UID)

	mu    sync.Mutex
	books map[Ref]*book
	uses  map[types.UID][]Ref
}

// book is one object in use.
type book struct {
	users map[types.UID]bool
	stop  context.CancelFunc
	// known: obj is what the API has; nil: nothing of that name. Until then err is why it cannot be
	// told, or nil while the answer is under way.
	known bool
	obj   api.Object
	err   error
	// news is closed and replaced when any of these changes.
	news chan struct{}
}

// New makes a keeper with nothing in it. spawn runs its goroutines; changed is told each user of an
// object that has changed, without a lock held.
func New(c client.Interface, log *slog.Logger, spawn func(func()), changed func(types.UID)) *Keeper {
	return &Keeper{client: c, log: log, spawn: spawn, changed: changed, books: map[Ref]*book{}, uses: map[types.UID][]Ref{}}
}

// Use says which objects a pod names; those that it named before and nobody else does are let go. The
// watches end with ctx at the latest.
func (k *Keeper) Use(ctx context.Context, user types.UID, refs []Ref) {
	k.mu.Lock()
	defer k.mu.Unlock()
	before := k.uses[user]
	delete(k.uses, user)
	if len(refs) > 0 {
		k.uses[user] = refs
	}
	for _, ref := range refs {
		b := k.books[ref]
		if b == nil {
			own, cancel := context.WithCancel(ctx)
			b = &book{users: map[types.UID]bool{}, stop: cancel, news: make(chan struct{})}
			k.books[ref] = b
			k.spawn(func() { k.follow(own, ref, b) })
		}
		b.users[user] = true
	}
	for _, ref := range before {
		b := k.books[ref]
		if b == nil || contains(refs, ref) {
			continue
		}
		delete(b.users, user)
		if len(b.users) == 0 {
			b.stop()
			delete(k.books, ref)
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
func (k *Keeper) Drop(user types.UID) { k.Use(context.Background(), user, nil) }

// Get is an object in use as it is now; it waits for the first answer. The object is shared.
func (k *Keeper) Get(ctx context.Context, ref Ref) (api.Object, error) {
	for {
		k.mu.Lock()
		b := k.books[ref]
		if b == nil {
			k.mu.Unlock()
			return nil, fmt.Errorf("%s %q is not in use", ref.Kind.Kind, ref.Name)
		}
		known, obj, err, news := b.known, b.obj, b.err, b.news
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
		case <-news:
		case <-ctx.Done():
			return nil, fmt.Errorf("%s %q: %w", strings.ToLower(ref.Kind.Kind), ref.Name, ctx.Err())
		}
	}
}

// set notes what the API has, and tells who has been told otherwise.
func (k *Keeper) set(b *book, obj api.Object) {
	k.mu.Lock()
	told := b.known || b.err != nil
	b.known, b.obj, b.err = true, obj, nil
	close(b.news)
	b.news = make(chan struct{})
	var users []types.UID
	if told {
		for u := range b.users {
			users = append(users, u)
		}
	}
	k.mu.Unlock()
	for _, u := range users {
		k.changed(u)
	}
}

// fail notes why a book cannot be read; what was known of it may still be true. Who asks is told so, and
// tries again by himself.
func (k *Keeper) fail(b *book, err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if !b.known {
		b.err = err
		close(b.news)
		b.news = make(chan struct{})
	}
}

// immutable says that an object will stay as it is.
func immutable(obj api.Object) bool {
	switch o := obj.(type) {
	case *corev1.ConfigMap:
		return o.Immutable != nil && *o.Immutable
	case *corev1.Secret:
		return o.Immutable != nil && *o.Immutable
	}
	return false
}
