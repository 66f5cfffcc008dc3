package informer

import (
	"context"
	"log/slog"
	"sync"

	"minik8s/internal/api"
	"minik8s/internal/client"
	"minik8s/internal/informer/reflector"
	"minik8s/internal/supervise"
)

// Views are a process's views: one for each kind and selection that informers follow, however many follow it. A view
// exists while an informer follows it.
type Views struct {
	client client.Interface
	log    *slog.Logger
	own    bool // they serve one informer, and client is its client

	mu   sync.Mutex
	open map[selection]*view
}

// NewViews makes an empty set of views. They read with the rights of c.
func NewViews(c client.Interface, log *slog.Logger) *Views {
	return &Views{client: c, log: log, open: map[selection]*view{}}
}

func newOwn(c client.Interface, log *slog.Logger) *Views {
	v := NewViews(c, log)
	v.own = true
	return v
}

// selection is what a view shows; labels and fields are selectors as text.
type selection struct {
	kind                      *api.Kind
	namespace, labels, fields string
}

func selectionOf(kind *api.Kind, o Options) selection {
	s := selection{kind: kind, namespace: o.Namespace}
	// A selector that selects nothing is, as text, one that selects everything.
	if o.Labels != nil && !o.Labels.Empty() {
		s.labels = "=" + o.Labels.String()
	}
	if o.Fields != nil && !o.Fields.Empty() {
		s.fields = "=" + o.Fields.String()
	}
	return s
}

// enter returns the view of a selection, and starts it if nobody follows it yet. Each enter needs one leave.
func (v *Views) enter(kind *api.Kind, o Options) *view {
	v.mu.Lock()
	defer v.mu.Unlock()
	s := selectionOf(kind, o)
	w := v.open[s]
	if w == nil {
		ctx, stop := context.WithCancel(context.Background())
		w = &view{objects: map[string]api.Object{}, stop: stop, done: make(chan struct{})}
		v.open[s] = w
		go v.run(ctx, w, kind, o)
	}
	w.followers++
	return w
}

// leave gives a view up. If nobody else follows it, it has ended when leave returns.
func (v *Views) leave(kind *api.Kind, o Options, w *view) {
	v.mu.Lock()
	w.followers--
	last := w.followers == 0
	if s := selectionOf(kind, o); last && v.open[s] == w {
		delete(v.open, s)
	}
	v.mu.Unlock()
	if last {
		w.stop()
		<-w.done
	}
}

func (v *Views) run(ctx context.Context, w *view, kind *api.Kind, o Options) {
	defer close(w.done)
	r := reflector.Reflector{Client: v.client, Kind: kind, Namespace: o.Namespace, Labels: o.Labels, Fields: o.Fields,
		Log: v.log, Replace: w.replace, Apply: w.apply}
	if err := supervise.Safe(func() error { r.Run(ctx); return nil }); err != nil {
		v.mu.Lock()
		if s := selectionOf(kind, o); v.open[s] == w { // who comes next needs a new one
			delete(v.open, s)
		}
		v.mu.Unlock()
		w.fail(err)
	}
}
