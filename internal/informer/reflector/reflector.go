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

// Reflector says what to follow and what to call. Its functions are called one at a time; while one runs the watch
// waits.
type Reflector struct {
	Client    client.Interface
	Kind      *api.Kind
	Namespace string // empty: all namespaces
	Labels    labels.Selector
	Fields    fields.Selector
	Log       *slog.Logger
	// From is the revision of a list that the caller has: what changed since is applied, and nothing is listed before.
	// Empty: begin with a list.
	From string

	// Replace is called with all objects that exist, and the revision of the list.
	Replace func(items []api.Object, revision string)
	// Apply is called with each change after that, and with bookmarks.
	Apply func(client.Event)
	// Failed, which may be nil, is called with the reason when a watch brought nothing. The next is tried after a
	// pause.
	Failed func(error)
}

const (
	minPause = 50 * time.Millisecond
	maxPause = 5 * time.Second
)

var errIncomplete = errors.New("the watch ended before it had sent all objects")

// Run follows until ctx ends.
func (r *Reflector) Run(ctx context.Context) {
	Recover(ctx, r.From, r.watch, func(err error, pause time.Duration, nothing bool) {
		if nothing && err != nil && r.Failed != nil {
			r.Failed(err)
		}
		r.log(err, pause)
	})
}

// Recover calls watch again and again until ctx ends. watch follows changes from a revision, or if that is empty from
// what exists, and returns the revision that it has reached, which is the given one if it brought nothing. broken is
// called before each pause, with watch's error, which may be nil, and whether it brought nothing.
func Recover(ctx context.Context, revision string, watch func(ctx context.Context, revision string) (string, error),
	broken func(err error, pause time.Duration, nothing bool)) {
	pause := minPause
	for {
		began := time.Now()
		next, err := watch(ctx, revision)
		if ctx.Err() != nil {
			return
		}
		progress := next != revision
		if progress || time.Since(began) >= maxPause { // one that was open and had nothing to say has not failed
			pause = minPause
		}
		if revision = next; answered(err) {
			revision = ""
		}
		if progress && err == nil {
			continue
		}
		broken(err, pause, !progress)
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

// answered reports whether an error is the server's answer, and not that of the connection to it.
func answered(err error) bool {
	var status apierrors.APIStatus
	return errors.As(err, &status)
}

// watch is one watch, from a revision, or with a list first. It returns the revision that it has reached, which is
// the given one if it brought nothing.
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

// log logs that a watch is opened again. From the second one in a row that brings nothing it is a warning, unless the
// history was only compacted.
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
