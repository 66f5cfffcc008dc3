package encoding

import (
	"bytes"
	"encoding/json"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"minik8s/internal/clock"
	"minik8s/internal/registry"
)

// List encodes a list piece by piece, in the requested format: what comes before the items, each item, and what comes
// after them. All three append to dst.
type List struct {
	Head func(dst []byte) ([]byte, error)
	Item func(dst []byte, i int, e *registry.Entry) ([]byte, error)
	Tail func(dst []byte, n int) []byte
}

// List prepares the encoding of a list.
func (enc *Encoder) List(l *registry.List) (*List, error) {
	lm := metav1.ListMeta{ResourceVersion: strconv.FormatInt(l.Revision, 10), Continue: l.Continue, RemainingItemCount: l.Remaining}
	var head any
	key := "items"
	item := func(dst []byte, e *registry.Entry) ([]byte, error) {
		e, err := enc.shown(e)
		if err != nil {
			return dst, err
		}
		return e.AppendJSON(dst), nil
	}
	switch {
	case enc.As == Table:
		now := clock.Now()
		head, key = enc.table(lm, true), "rows"
		item = func(dst []byte, e *registry.Entry) ([]byte, error) {
			row, err := enc.tableRow(e, now)
			if err != nil {
				return dst, err
			}
			return appendJSON(dst, row)
		}
	case enc.Format == Protobuf:
		return enc.protobufList(l, lm)
	case enc.As == PartialMetadata || enc.As == PartialMetadataList:
		head = &metav1.PartialObjectMetadataList{TypeMeta: metav1.TypeMeta{Kind: PartialMetadataList, APIVersion: "meta.k8s.io/v1"}, ListMeta: lm}
		item = func(dst []byte, e *registry.Entry) ([]byte, error) {
			return appendJSON(dst, partialMetadata(e.Object()))
		}
	default:
		head = &struct {
			metav1.TypeMeta `json:",inline"`
			metav1.ListMeta `json:"metadata"`
		}{metav1.TypeMeta{Kind: enc.Served().Kind + "List", APIVersion: enc.Served().APIVersion()}, lm}
	}
	raw, err := json.Marshal(head)
	if err != nil {
		return nil, err
	}
	// The head is an object, which may end with its empty items.
	raw = bytes.TrimSuffix(raw, []byte("}"))
	for _, empty := range []string{"[]", "null"} {
		raw = bytes.TrimSuffix(raw, []byte(`,"`+key+`":`+empty))
	}
	if enc.Format == YAML {
		return yamlList(raw, key, item), nil
	}
	return jsonList(raw, key, item), nil
}

// jsonList joins the JSON of the items; for plain objects these are the stored bytes.
func jsonList(head []byte, key string, item func([]byte, *registry.Entry) ([]byte, error)) *List {
	return &List{
		Head: func(dst []byte) ([]byte, error) {
			return append(append(dst, head...), `,"`+key+`":[`...), nil
		},
		Item: func(dst []byte, i int, e *registry.Entry) ([]byte, error) {
			if i > 0 {
				dst = append(dst, ',')
			}
			return item(dst, e)
		},
		Tail: func(dst []byte, _ int) []byte { return append(dst, ']', '}', '\n') },
	}
}

// yamlList is jsonList in YAML: the items are a sequence below the last key.
func yamlList(head []byte, key string, item func([]byte, *registry.Entry) ([]byte, error)) *List {
	return &List{
		Head: func(dst []byte) ([]byte, error) {
			y, err := toYAML(append(bytes.Clone(head), '}'))
			return append(append(dst, y...), key+":"...), err
		},
		Item: func(dst []byte, _ int, e *registry.Entry) ([]byte, error) {
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
		Tail: func(dst []byte, n int) []byte {
			if n == 0 {
				dst = append(dst, " []"...)
			}
			return append(dst, '\n')
		},
	}
}
