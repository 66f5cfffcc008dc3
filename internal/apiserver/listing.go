package apiserver

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strconv"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"minik8s/internal/registry"
)

// listForm is how a list looks in one of the forms a client may ask for: what stands before the items, each
// item, what stands after them. All three append to dst.
type listForm struct {
	head func(dst []byte) ([]byte, error)
	item func(dst []byte, i int, e *registry.Entry) ([]byte, error)
	tail func(dst []byte, n int) []byte
}

// chunkSize is how much of an answer is built before it is sent. However long a list is, this much of it is
// in memory at a time.
const chunkSize = 64 << 10

// chunks are the buffers of the answers under way.
var chunks = sync.Pool{New: func() any { b := make([]byte, 0, chunkSize); return &b }}

// giveBack keeps a buffer for the next answer, but not one that a large object has made large.
func giveBack(buf *[]byte) {
	if cap(*buf) <= 2*chunkSize {
		b := (*buf)[:0]
		chunks.Put(&b)
	}
}

// answerList sends a list in the form the client asked for, piece by piece.
func (s *Server) answerList(r *request, l *registry.List) error {
	form, err := r.listForm(l)
	if err != nil {
		return err
	}
	b := *chunks.Get().(*[]byte)
	defer func() { giveBack(&b) }()
	out := s.paced(r.Response())
	out.hold = true
	h := r.Response().Header()
	h.Set("Content-Type", r.neg.contentType())
	h.Set("Cache-Control", "no-cache, private")
	if b, err = form.head(b); err != nil {
		return err
	}
	for i, e := range l.Entries {
		if b, err = form.item(b, i, e); err != nil {
			if r.Response().Committed {
				panic(http.ErrAbortHandler) // half a list must not look like a whole one
			}
			return err
		}
		if len(b) >= chunkSize {
			if _, err := out.Write(b); err != nil {
				return nil //nolint:nilerr // the client has gone
			}
			b = b[:0]
		}
	}
	b = form.tail(b, len(l.Entries))
	if !r.Response().Committed {
		h.Set("Content-Length", strconv.Itoa(len(b)))
	}
	out.Write(b) //nolint:errcheck // a client that has gone needs no answer
	return nil
}

// listForm is the form that the client asked for.
func (r *request) listForm(l *registry.List) (*listForm, error) {
	lm := metav1.ListMeta{ResourceVersion: strconv.FormatInt(l.Revision, 10), Continue: l.Continue, RemainingItemCount: l.Remaining}
	var head any
	key := "items"
	item := func(dst []byte, e *registry.Entry) ([]byte, error) {
		e, err := r.shown(e)
		if err != nil {
			return dst, err
		}
		return e.AppendJSON(dst), nil
	}
	switch {
	case r.neg.as == asTable:
		now := time.Now()
		head, key = r.table(lm, true), "rows"
		item = func(dst []byte, e *registry.Entry) ([]byte, error) {
			row, err := r.tableRow(e, now)
			if err != nil {
				return dst, err
			}
			return appendJSON(dst, row)
		}
	case r.neg.format == protobufFormat:
		return r.protobufListForm(l, lm)
	case r.neg.as == asPartial || r.neg.as == asPartialList:
		head = &metav1.PartialObjectMetadataList{TypeMeta: metav1.TypeMeta{Kind: asPartialList, APIVersion: "meta.k8s.io/v1"}, ListMeta: lm}
		item = func(dst []byte, e *registry.Entry) ([]byte, error) { return appendJSON(dst, partial(e.Object())) }
	default:
		head = &struct {
			metav1.TypeMeta `json:",inline"`
			metav1.ListMeta `json:"metadata"`
		}{metav1.TypeMeta{Kind: r.form().Kind + "List", APIVersion: r.form().APIVersion()}, lm}
	}
	raw, err := json.Marshal(head)
	if err != nil {
		return nil, err
	}
	// The head is an object that may end with its empty items.
	raw = bytes.TrimSuffix(raw, []byte("}"))
	for _, empty := range []string{"[]", "null"} {
		raw = bytes.TrimSuffix(raw, []byte(`,"`+key+`":`+empty))
	}
	if r.neg.format == yamlFormat {
		return yamlListForm(raw, key, item), nil
	}
	return jsonListForm(raw, key, item), nil
}

// jsonListForm joins the JSON of the items; for plain objects these are the stored bytes.
func jsonListForm(head []byte, key string, item func([]byte, *registry.Entry) ([]byte, error)) *listForm {
	return &listForm{
		head: func(dst []byte) ([]byte, error) {
			return append(append(dst, head...), `,"`+key+`":[`...), nil
		},
		item: func(dst []byte, i int, e *registry.Entry) ([]byte, error) {
			if i > 0 {
				dst = append(dst, ',')
			}
			return item(dst, e)
		},
		tail: func(dst []byte, _ int) []byte { return append(dst, ']', '}', '\n') },
	}
}

// yamlListForm is the same list in YAML: the items are a sequence below the last key.
func yamlListForm(head []byte, key string, item func([]byte, *registry.Entry) ([]byte, error)) *listForm {
	return &listForm{
		head: func(dst []byte) ([]byte, error) {
			y, err := toYAML(append(bytes.Clone(head), '}'))
			return append(append(dst, y...), key+":"...), err
		},
		item: func(dst []byte, _ int, e *registry.Entry) ([]byte, error) {
			raw, err := item(nil, e)
			if err != nil {
				return dst, err
			}
			y, err := toYAML(raw)
			if err != nil {
				return dst, err
			}
			before := "\n- "
			for line := range bytes.Lines(y) {
				line = bytes.TrimSuffix(line, []byte("\n"))
				if len(line) > 0 || before == "\n- " {
					dst = append(append(dst, before...), line...)
				} else {
					dst = append(dst, '\n')
				}
				before = "\n  "
			}
			return dst, nil
		},
		tail: func(dst []byte, n int) []byte {
			if n == 0 {
				dst = append(dst, " []"...)
			}
			return append(dst, '\n')
		},
	}
}
