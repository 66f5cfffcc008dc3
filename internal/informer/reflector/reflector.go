// Package reflector follows the objects of a kind through watches that break, for as long as its caller lives.
//
// It promises: Replace is called with all objects there are, then Apply with every change after that, in order and
// each once. A watch that ends is opened again where it had come to. When the server answers that with an error, as it
// does when it has no history from there on, the next watch begins with everything again and Replace is called again;
// the caller must take that as the whole truth. Between watches that bring nothing there is a pause, which doubles from
// 50 ms to 5 s. Only the end of ctx ends it, and after that nothing is called any more.
//
// The first objects come by the watch itself (sendInitialEvents, KEP-3157), so that there is one request and not two.
//
// Package informer is a reflector with a cache; the kubelet keeps its pods, its Node and the objects that its pods
// use by reflectors without one. This is the only place where a watch through client.Interface is recovered. What
// looks alike is not: the registry's cache follows the store below client.Interface and never loses its connection to
// it, and `get --watch` ends with the error that it met. Nothing survives a kill -9, nor need it.
package reflector

import (
	"context"
	"errors"
	"log/slog"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"

	"minik8s/internal/api"
	"minik8s/internal/client"
)

// Reflector says what to follow and who is told. Its functions are called one at a time; while
// one runs the watch waits.
type Reflector struct {
	Client    client.Interface
	Kind      *api.Kind
	Namespace string // empty: all namespaces
	Labels    labels.Selector
	Fields    fields.Selector
	Log       *slog.Logger

	// Replace is given all objects there are, at a revision.
	Replace func(items []api.Object, revision string)
	// Apply is given each change after that, and bookmarks.
	Apply func(client.Event)
	// Failed, which may be nil, is told why a watch brought nothing. The next is tried after a pause.
	Failed func(error)
}

const (
	minPause = 50 * time.Millisecond
	maxPause = 5 * time.Second
)

var errIncomplete = errors.New("the watch ended before it had sent all objects")

// Run follows until ctx ends.
func (r *Reflector) Run(ctx context.Context) {
	revision, pause := "", minPause // an empty revision: begin with everything
	for {
		next, err := r.watch(ctx, revision)
		if ctx.Err() != nil {
			return
		}
		progress := next != revision
		if progress {
			pause = minPause
		} else if err != nil && r.Failed != nil {
			r.Failed(err)
		}
		if revision = next; answered(err) {
			revision = ""
		}
		if progress && err == nil {
			continue
		}
		r.log(err, pause)
		t := time.NewTimer(pause)
		select {
		case <-t.C:
		case <-ctx.Done():
			t.Stop()
			return
		}
		pause = min(2*pause, maxPause)
	}
}

// answered says that an error came from the server and not from the way to it.
func answered(err error) bool {
	var status apierrors.APIStatus
	return errors.As(err, &status)
}

// watch is one watch, from a revision or with everything first. It returns the revision that it has come to, which
// is the one it was given if it brought nothing.
func (r *Reflector) watch(ctx context.Context, revision string) (string, error) {
	w, err := r.Client.Watch(ctx, r.Kind, client.WatchOptions{Namespace: r.Namespace, Labels: r.Labels, Fields: r.Fields,
		ResourceVersion: revision, Bookmarks: true})
	if err != nil {
		return revision, err
	}
	defer w.Stop()
	var initial []api.Object
	for e := range w.Events() {
		switch {
		case ctx.Err() != nil:
			return revision, nil
		case revision != "":
			r.Apply(e)
		case e.Type != client.Bookmark:
			initial = append(initial, e.Object)
			continue
		case !e.InitialEnd:
			continue
		default:
			r.Replace(initial, e.ResourceVersion)
			initial = nil
		}
		revision = e.ResourceVersion
	}
	if err = w.Err(); err == nil && revision == "" {
		err = errIncomplete
	}
	return revision, err
}

// log says that a watch is opened again. From the second that brings nothing in a row on it is a warning, unless
// what it needed was only too old.
func (r *Reflector) log(err error, pause time.Duration) {
	level := slog.LevelInfo
	if pause > minPause && !apierrors.IsResourceExpired(err) && !apierrors.IsGone(err) {
		level = slog.LevelWarn
	}
	args := []any{"kind", r.Kind.String(), "error", err, "in", pause}
	if r.Namespace != "" {
		args = append(args, "namespace", r.Namespace)
	}
	if r.Fields != nil && !r.Fields.Empty() {
		args = append(args, "fields", r.Fields.String())
	}
	r.Log.Log(context.Background(), level, "watch ended, opening it again", args...)
}
