package apiserver

import (
	"context"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"minik8s/internal/api"
	"minik8s/internal/api/table"
	"minik8s/internal/apiserver/streaming"
	"minik8s/internal/client"
	"minik8s/internal/registry"
)

// maxWatch is how long a watch lasts for a client that does not say.
const maxWatch = time.Hour

// watch streams changes until the client goes, its time is up, or it was too slow (410).
func (s *Server) watch(r *request) error {
	opts, err := r.watchOptions()
	if err != nil {
		return err
	}
	limit := maxWatch
	if t := r.query.Get("timeoutSeconds"); t != "" {
		n, err := strconv.ParseInt(t, 10, 32)
		if err != nil || n < 0 {
			return apierrors.NewBadRequest("timeoutSeconds: " + strconv.Quote(t) + " is not a number of seconds")
		}
		if n > 0 {
			limit = time.Duration(n) * time.Second
		}
	}
	ctx, cancel := context.WithTimeout(r.Request().Context(), limit)
	defer cancel()
	w, err := s.reg.Watch(ctx, r.ask, opts)
	if err != nil {
		return err
	}
	s.metrics.watches.Inc()
	defer s.metrics.watches.Dec()
	if streaming.IsWebSocket(r.Request()) {
		return s.watchMessages(r, w)
	}
	h := r.Response().Header()
	h.Set("Content-Type", r.neg.streamType())
	h.Set("Cache-Control", "no-cache, private")
	r.Response().WriteHeader(http.StatusOK)
	st := &stream{r: r, out: s.paced(r.Response())}
	if _, err := st.out.Write(nil); err != nil { // the client sees that the watch stands
		return nil //nolint:nilerr // the client has gone
	}
	return st.run(ctx, w)
}

// watchMessages sends the events as messages of a WebSocket, each one by itself.
func (s *Server) watchMessages(r *request, w *registry.Watch) error {
	r.neg.format = jsonFormat
	out, ctx, closing, err := streaming.Open(r.Response(), r.Request(), true, s.cfg.WriteTimeout)
	if err != nil {
		return err
	}
	defer closing()
	return (&stream{r: r, out: out, single: true}).run(ctx, w)
}

func (r *request) watchOptions() (registry.WatchOptions, error) {
	l := r.list
	o := registry.WatchOptions{Labels: l.Labels, Bookmarks: isTrue(r.query.Get("allowWatchBookmarks"))}
	send := r.query.Get("sendInitialEvents")
	if send != "" && l.Match != metav1.ResourceVersionMatchNotOlderThan {
		return o, apierrors.NewBadRequest("sendInitialEvents: needs resourceVersionMatch=NotOlderThan")
	}
	rev, err := strconv.ParseInt("0"+l.ResourceVersion, 10, 64)
	if err != nil {
		return o, apierrors.NewBadRequest("resourceVersion: not a number: " + strconv.Quote(l.ResourceVersion))
	}
	o.Revision = rev
	// Without a revision Kubernetes sends what there is, then the changes.
	o.Initial = isTrue(send) || send == "" && rev == 0
	o.InitialEnd = isTrue(send) && o.Bookmarks
	return o, nil
}

// stream writes the events of one watch.
type stream struct {
	r     *request
	out   io.Writer
	buf   []byte // what is not yet sent; nil between bursts, so that a quiet watch holds none
	begun bool   // a Table's first event carries the columns
	// single: every event is sent by itself.
	single bool
}

func (st *stream) run(ctx context.Context, w *registry.Watch) error {
	for {
		events, err := w.Next(ctx)
		if err != nil {
			status := statusOf(err)
			st.add("ERROR", func(dst []byte) ([]byte, error) { return st.r.appendObject(dst, &status) }) //nolint:errcheck // the stream ends either way
			st.flush()                                                                                   //nolint:errcheck // as above
			return nil
		}
		for _, e := range events {
			if err := st.event(e); err != nil {
				return nil //nolint:nilerr // the client has gone
			}
			if (st.single || len(st.buf) >= chunkSize) && st.flush() != nil {
				return nil
			}
		}
		if st.flush() != nil || ctx.Err() != nil {
			return nil
		}
	}
}

// flush sends what is in the buffer and gives the buffer back.
func (st *stream) flush() error {
	if len(st.buf) == 0 {
		return nil
	}
	_, err := st.out.Write(st.buf)
	giveBack(&st.buf)
	st.buf = nil
	return err
}

// event adds one event to the buffer.
func (st *stream) event(e registry.Event) error {
	if e.Type == client.Bookmark {
		return st.add(string(e.Type), func(dst []byte) ([]byte, error) {
			return st.r.appendObject(dst, bookmark(st.r.form(), st.r.neg, e))
		})
	}
	columns := !st.begun
	st.begun = true
	return st.add(string(e.Type), func(dst []byte) ([]byte, error) {
		name, ok := st.r.formName(e)
		if !ok || columns && st.r.neg.as == asTable {
			return st.r.appendEntry(dst, e.Entry, columns)
		}
		raw, err := e.Forms.Get(name, func() ([]byte, error) { return st.r.appendEntry(nil, e.Entry, false) })
		return append(dst, raw...), err
	})
}

// add adds an event, whose object is appended by object.
func (st *stream) add(typ string, object func(dst []byte) ([]byte, error)) (err error) {
	if st.buf == nil {
		st.buf = *chunks.Get().(*[]byte)
	}
	st.buf, err = st.r.appendEvent(st.buf, typ, object)
	return err
}

// formName names the form in which a client gets the object of an event: watches that ask for the same form share
// one encoding. false: it is not worth sharing, or depends on what only this client asks for.
func (r *request) formName(e registry.Event) (string, bool) {
	if e.Forms == nil || r.neg.as == "" && r.neg.format == jsonFormat && r.view == nil { // the stored bytes
		return "", false
	}
	include := r.query.Get("includeObject")
	known := slices.Contains([]string{"", "None", "Metadata", "Object"}, include) && r.layout() == table.Default
	if !known {
		return "", false
	}
	name := strings.Join([]string{r.form().Group, strconv.Itoa(int(r.neg.format)), r.neg.as, include}, "|")
	if e.Type == api.Deleted { // its object is what was there before; for others, whose selectors still show it, it is not
		name = "gone|" + name
	}
	return name, true
}

// bookmark is an empty object of the kind that is watched, with a revision.
func bookmark(kind *api.Kind, neg negotiated, e registry.Event) runtime.Object {
	obj := kind.New()
	obj.GetObjectKind().SetGroupVersionKind(kind.GVK())
	obj.SetResourceVersion(strconv.FormatInt(e.Revision, 10))
	if e.InitialEnd {
		obj.SetAnnotations(map[string]string{metav1.InitialEventsAnnotationKey: "true"})
	}
	switch neg.as {
	case asTable:
		return &metav1.Table{TypeMeta: metav1.TypeMeta{Kind: "Table", APIVersion: "meta.k8s.io/v1"},
			ListMeta:          metav1.ListMeta{ResourceVersion: obj.GetResourceVersion()},
			ColumnDefinitions: []metav1.TableColumnDefinition{},
			Rows:              []metav1.TableRow{{Cells: []any{}, Object: runtime.RawExtension{Object: partial(obj)}}}}
	case asPartial, asPartialList:
		return partial(obj)
	}
	return obj
}
