package handlers

import (
	"net/http"
	"strconv"

	"k8s.io/apimachinery/pkg/runtime"

	"minik8s/internal/apiserver/encoding"
	"minik8s/internal/registry"
	"minik8s/internal/streaming"
)

// answer sends one object in the requested form.
func (r *request) answer(code int, e *registry.Entry) error {
	if r.form != nil {
		return r.answerPlain(code, r.form.Of(e.Object()))
	}
	body, err := r.out.Entry(nil, e, true)
	if err != nil {
		return err
	}
	return r.send(code, body)
}

// answerObject sends an object that is not stored.
func (r *request) answerObject(code int, obj runtime.Object) error {
	body, err := r.out.Object(nil, obj)
	if err != nil {
		return err
	}
	return r.send(code, body)
}

// answerPlain is answerObject for objects without metadata, which cannot be rows of a Table (406 if the client
// accepts nothing else).
func (r *request) answerPlain(code int, obj runtime.Object) error {
	if err := r.negotiatePlain(); err != nil {
		return err
	}
	return r.answerObject(code, obj)
}

func (r *request) negotiatePlain() (err error) {
	if r.out.As != "" {
		r.out.MediaType, err = encoding.NegotiatePlain(r.kind, r.accept())
	}
	return err
}

// send sends a body that is JSON, or protobuf if requested.
func (r *request) send(code int, body []byte) error {
	body, err := r.out.Body(body)
	if err != nil {
		return err
	}
	h := r.Response().Header()
	h.Set("Content-Type", r.out.ContentType())
	h.Set("Content-Length", strconv.Itoa(len(body)))
	h.Set("Cache-Control", "no-cache, private")
	r.Response().WriteHeader(code)
	_, err = r.Response().Write(body)
	return err
}

// answerList sends a list in the requested form, piece by piece.
func (h *Handler) answerList(r *request, l *registry.List) error {
	list, err := r.out.List(l)
	if err != nil {
		return err
	}
	b := streaming.Buffer()
	defer func() { streaming.Release(b) }()
	out := streaming.NewWriter(r.Response(), h.writeTimeout)
	out.Buffered = true
	header := r.Response().Header()
	header.Set("Content-Type", r.out.ContentType())
	header.Set("Cache-Control", "no-cache, private")
	if b, err = list.Head(b); err != nil {
		return err
	}
	for i, e := range l.Entries {
		if b, err = list.Item(b, i, e); err != nil {
			if r.Response().Committed {
				panic(http.ErrAbortHandler) // part of a list must not look like a whole one
			}
			return err
		}
		if len(b) >= streaming.ChunkSize {
			if _, err := out.Write(b); err != nil {
				return nil //nolint:nilerr // the client has disconnected
			}
			b = b[:0]
		}
	}
	b = list.Tail(b, len(l.Entries))
	if !r.Response().Committed {
		header.Set("Content-Length", strconv.Itoa(len(b)))
	}
	out.Write(b) //nolint:errcheck // a client that has disconnected needs no answer
	return nil
}
