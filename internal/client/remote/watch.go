package remote

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"minik8s/internal/api"
	"minik8s/internal/client"
)

// wireEvent is metav1.WatchEvent with the object left as bytes.
type wireEvent struct {
	Type   string          `json:"type"`
	Object json.RawMessage `json:"object"`
}

// backlog is how many events are buffered for a slow reader before the connection is no longer read.
const backlog = 64

// Watch streams the changes of a kind.
func (c *Client) Watch(ctx context.Context, kind *api.Kind, opts client.WatchOptions) (client.Watcher, error) {
	s, err := c.stream(ctx, collectionPath(kind, opts.Namespace), watchQuery(opts), "")
	if err != nil {
		return nil, err
	}
	w := &watcher{stream: s, kind: kind, bookmarks: opts.Bookmarks, events: make(chan client.Event, backlog)}
	go w.run()
	return w, nil
}

func watchQuery(opts client.WatchOptions) url.Values {
	q := listQuery(client.ListOptions{Labels: opts.Labels, Fields: opts.Fields})
	q.Set("watch", "true")
	if opts.Bookmarks {
		q.Set("allowWatchBookmarks", "true")
	}
	if opts.ResourceVersion != "" {
		q.Set("resourceVersion", opts.ResourceVersion)
		return q
	}
	// The server requires all three together.
	q.Set("sendInitialEvents", "true")
	q.Set("resourceVersionMatch", string(metav1.ResourceVersionMatchNotOlderThan))
	q.Set("allowWatchBookmarks", "true")
	return q
}

// stream is an open watch as bytes.
type stream struct {
	ctx    context.Context
	cancel context.CancelFunc
	body   io.ReadCloser
	dec    *json.Decoder
	client *Client

	mu  sync.Mutex
	err error
}

func (c *Client) stream(ctx context.Context, path string, query url.Values, accept string) (*stream, error) {
	ctx, cancel := context.WithCancel(ctx)
	resp, err := c.do(ctx, request{method: http.MethodGet, path: path, query: query, accept: accept})
	if err != nil {
		cancel()
		return nil, err
	}
	return &stream{ctx: ctx, cancel: cancel, body: resp.Body, dec: json.NewDecoder(resp.Body), client: c}, nil
}

// next waits for an event; false means that the stream has ended and err says why.
func (s *stream) next() (wireEvent, bool) {
	var e wireEvent
	if err := s.dec.Decode(&e); err != nil {
		s.end(err)
		return e, false
	}
	if e.Type == "ERROR" {
		var status metav1.Status
		if err := json.Unmarshal(e.Object, &status); err != nil || status.Kind != "Status" {
			s.end(fmt.Errorf("the watch ended with an error that is no Status: %.200s", e.Object))
		} else {
			s.end(&apierrors.StatusError{ErrStatus: status})
		}
		return e, false
	}
	return e, true
}

// end records why the stream ended; nil if the caller stopped it.
func (s *stream) end(err error) {
	stopped := s.ctx.Err() != nil
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case stopped || s.err != nil:
	case errors.Is(err, io.EOF):
		s.err = fmt.Errorf("the server closed the watch: %w", io.EOF)
	default:
		var status *apierrors.StatusError
		if errors.As(err, &status) {
			s.err = status
		} else {
			s.err = &Unreachable{At: s.client.at, Err: err}
		}
	}
}

func (s *stream) close() {
	s.cancel()
	s.body.Close()
}

// Err says why the watch ended.
func (s *stream) Err() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}

// Stop ends the watch.
func (s *stream) Stop() { s.cancel() }

type watcher struct {
	*stream
	kind      *api.Kind
	bookmarks bool
	events    chan client.Event
}

// Events is the stream of changes.
func (w *watcher) Events() <-chan client.Event { return w.events }

func (w *watcher) run() {
	defer close(w.events)
	defer w.close()
	for {
		raw, ok := w.next()
		if !ok {
			return
		}
		e, err := w.decode(raw)
		if err != nil {
			w.end(err)
			return
		}
		if e.Type == client.Bookmark && !w.bookmarks {
			continue
		}
		select {
		case w.events <- e:
		case <-w.ctx.Done():
			return
		}
	}
}

func (w *watcher) decode(raw wireEvent) (client.Event, error) {
	e := client.Event{Type: client.EventType(raw.Type)}
	switch e.Type {
	case client.Added, client.Modified, client.Deleted:
		obj, err := decode(w.kind, raw.Object)
		if err != nil {
			return e, err
		}
		e.Object, e.ResourceVersion = obj, obj.GetResourceVersion()
	case client.Bookmark:
		var mark metav1.PartialObjectMetadata
		if err := json.Unmarshal(raw.Object, &mark); err != nil {
			return e, err
		}
		e.ResourceVersion = mark.ResourceVersion
		e.InitialEnd = mark.Annotations[metav1.InitialEventsAnnotationKey] == "true"
	default:
		return e, fmt.Errorf("the watch sent an event of the unknown type %q", raw.Type)
	}
	return e, nil
}
