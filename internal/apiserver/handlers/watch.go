package handlers

import (
	"context"
	"io"
	"net/http"
	"strconv"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"minik8s/internal/api"
	"minik8s/internal/apiserver/encoding"
	"minik8s/internal/client"
	"minik8s/internal/registry"
	"minik8s/internal/streaming"
)

// maxWatch is how long a watch lasts if the client gives no timeout.
const maxWatch = time.Hour

// watch streams changes until the client disconnects, its time is up, or it was too slow (410).
func (h *Handler) watch(r *request) error {
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
	w, err := h.reg.Watch(ctx, r.ask, opts)
	if err != nil {
		return err
	}
	h.watches.Inc()
	defer h.watches.Dec()
	if streaming.IsWebSocket(r.Request()) {
		return h.watchMessages(r, w)
	}
	header := r.Response().Header()
	header.Set("Content-Type", r.out.StreamType())
	header.Set("Cache-Control", "no-cache, private")
	r.Response().WriteHeader(http.StatusOK)
	st := &stream{r: r, out: streaming.NewWriter(r.Response(), h.writeTimeout)}
	if _, err := st.out.Write(nil); err != nil { // shows the client that the watch is open
		return nil //nolint:nilerr // the client has disconnected
	}
	return st.run(ctx, w)
}

// watchMessages sends the events as messages of a WebSocket, one event per message.
func (h *Handler) watchMessages(r *request, w *registry.Watch) error {
	r.out.Format = encoding.JSON
	out, ctx, closing, err := streaming.Upgrader{}.Open(r.Response(), r.Request(), true, h.writeTimeout)
	if err != nil {
		return err
	}
	defer closing(true)
	return (&stream{r: r, out: out, single: true}).run(ctx, w)
}

// stream writes the events of one watch.
type stream struct {
	r     *request
	out   io.Writer
	buf   []byte // not yet sent; nil between bursts, so that a quiet watch holds no memory
	begun bool   // a Table's first event carries the columns
	// single: every event is sent by itself.
	single bool
}

func (st *stream) run(ctx context.Context, w *registry.Watch) error {
	for {
		events, err := w.Next(ctx)
		if err != nil {
			status := encoding.Status(err)
			st.add("ERROR", func(dst []byte) ([]byte, error) { return st.r.out.Object(dst, &status) }) //nolint:errcheck // the stream ends either way
			st.flush()                                                                                 //nolint:errcheck // as above
			return nil
		}
		for _, e := range events {
			if err := st.event(e); err != nil {
				return nil //nolint:nilerr // the client has disconnected
			}
			if (st.single || len(st.buf) >= streaming.ChunkSize) && st.flush() != nil {
				return nil
			}
		}
		if st.flush() != nil || ctx.Err() != nil {
			return nil
		}
	}
}

// flush sends what is in the buffer and releases the buffer.
func (st *stream) flush() error {
	if len(st.buf) == 0 {
		return nil
	}
	_, err := st.out.Write(st.buf)
	streaming.Release(st.buf)
	st.buf = nil
	return err
}

// event adds one event to the buffer.
func (st *stream) event(e registry.Event) error {
	if e.Type == client.Bookmark {
		return st.add(string(e.Type), func(dst []byte) ([]byte, error) {
			return st.r.out.Object(dst, st.r.out.Bookmark(e.Revision, e.InitialEnd))
		})
	}
	columns := !st.begun
	st.begun = true
	return st.add(string(e.Type), func(dst []byte) ([]byte, error) {
		key, ok := st.r.out.Key()
		if !ok || e.Encodings == nil || columns && st.r.out.As == encoding.Table {
			return st.r.out.Entry(dst, e.Entry, columns)
		}
		if e.Type == api.Deleted { // carries the object as it was; a watch that still sees it sends the new version
			key = "deleted|" + key
		}
		raw, err := e.Encodings.Get(key, func() ([]byte, error) { return st.r.out.Entry(nil, e.Entry, false) })
		return append(dst, raw...), err
	})
}

// add adds an event; the callback object appends the event's object.
func (st *stream) add(typ string, object func(dst []byte) ([]byte, error)) (err error) {
	if st.buf == nil {
		st.buf = streaming.Buffer()
	}
	st.buf, err = st.r.out.Event(st.buf, typ, object)
	return err
}
