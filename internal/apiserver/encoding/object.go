package encoding

import (
	"bytes"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"

	"minik8s/internal/api"
	"minik8s/internal/api/table"
	"minik8s/internal/registry"
)

// Encoder makes the bytes of one answer. What it appends is JSON, or protobuf where that was asked for; YAML is made of
// the JSON when an answer is whole (Body).
type Encoder struct {
	MediaType
	// Kind is the kind as it is stored; View, if it is not nil, the one that the client sees.
	Kind, View *api.Kind
	// IncludeObject is how much of an object goes along with its row in a Table: None, Metadata (also ""), Object.
	IncludeObject string
	// Layout is which columns a Table has.
	Layout table.Layout
}

// Served is the kind as the client sees it.
func (enc *Encoder) Served() *api.Kind {
	if enc.View != nil {
		return enc.View
	}
	return enc.Kind
}

// shown is an entry as the client sees it.
func (enc *Encoder) shown(e *registry.Entry) (*registry.Entry, error) {
	if enc.View == nil {
		return e, nil
	}
	return e.In(enc.View)
}

// Entry appends an object as the client asked for it: itself, its metadata, or a Table of one row;
// columns says whether the names of the columns go along.
func (enc *Encoder) Entry(dst []byte, e *registry.Entry, columns bool) ([]byte, error) {
	switch enc.As {
	case Table:
		t := enc.table(metav1.ListMeta{ResourceVersion: strconv.FormatInt(e.Revision(), 10)}, columns)
		row, err := enc.tableRow(e, time.Now())
		if err != nil {
			return dst, err
		}
		t.Rows = append(t.Rows, row)
		return appendJSON(dst, t)
	case PartialMetadata, PartialMetadataList:
		return enc.Object(dst, partialMetadata(e.Object()))
	}
	e, err := enc.shown(e)
	if err != nil {
		return dst, err
	}
	if enc.Format == Protobuf {
		return enc.Object(dst, e.Object())
	}
	return e.AppendJSON(dst), nil
}

// Object appends what has no stored bytes.
func (enc *Encoder) Object(dst []byte, obj runtime.Object) ([]byte, error) {
	if enc.Format != Protobuf {
		return appendJSON(dst, obj)
	}
	raw, err := encodeProtobuf(obj)
	if err != nil {
		return dst, apierrors.NewInternalError(err)
	}
	return append(dst, raw...), nil
}

func appendJSON(dst []byte, v any) ([]byte, error) {
	raw, err := json.Marshal(v)
	if err != nil {
		return dst, apierrors.NewInternalError(err)
	}
	return append(dst, raw...), nil
}

// Event appends an event of a watch, whose object is appended by object: a line of JSON, or protobuf behind its
// length.
func (enc *Encoder) Event(dst []byte, typ string, object func(dst []byte) ([]byte, error)) ([]byte, error) {
	if enc.Format == Protobuf {
		raw, err := object(nil)
		if err != nil {
			return dst, err
		}
		var event, framed bytes.Buffer
		if err := protobufRaw.Encode(&metav1.WatchEvent{Type: typ, Object: runtime.RawExtension{Raw: raw}}, &event); err != nil {
			return dst, err
		}
		if _, err := protobuf.LengthDelimitedFramer.NewFrameWriter(&framed).Write(event.Bytes()); err != nil {
			return dst, err
		}
		return append(dst, framed.Bytes()...), nil
	}
	begin := len(dst)
	dst = append(append(append(dst, `{"type":"`...), typ...), `","object":`...)
	dst, err := object(dst)
	if err != nil {
		return dst[:begin], err
	}
	return append(dst, '}', '\n'), nil
}

// Bookmark is an empty object of the kind that is watched, with a revision.
func (enc *Encoder) Bookmark(revision int64, initialEnd bool) runtime.Object {
	kind := enc.Served()
	obj := kind.New()
	obj.GetObjectKind().SetGroupVersionKind(kind.GVK())
	obj.SetResourceVersion(strconv.FormatInt(revision, 10))
	if initialEnd {
		obj.SetAnnotations(map[string]string{metav1.InitialEventsAnnotationKey: "true"})
	}
	switch enc.As {
	case Table:
		t := enc.table(metav1.ListMeta{ResourceVersion: obj.GetResourceVersion()}, false)
		t.Rows = append(t.Rows, metav1.TableRow{Cells: []any{}, Object: runtime.RawExtension{Object: partialMetadata(obj)}})
		return t
	case PartialMetadata, PartialMetadataList:
		return partialMetadata(obj)
	}
	return obj
}

// Key names the encoding in which this client gets the object of an event: watches with the same key share one. false:
// it is not worth sharing, or depends on what only this client asks for.
func (enc *Encoder) Key() (string, bool) {
	if enc.As == "" && enc.Format == JSON && enc.View == nil { // the stored bytes
		return "", false
	}
	if enc.Layout != table.Default || !slices.Contains([]string{"", "None", "Metadata", "Object"}, enc.IncludeObject) {
		return "", false
	}
	return strings.Join([]string{enc.Served().Group, strconv.Itoa(int(enc.Format)), enc.As, enc.IncludeObject}, "|"), true
}

// table is a Table without rows.
func (enc *Encoder) table(lm metav1.ListMeta, columns bool) *metav1.Table {
	t := &metav1.Table{TypeMeta: metav1.TypeMeta{Kind: "Table", APIVersion: "meta.k8s.io/v1"}, ListMeta: lm,
		ColumnDefinitions: []metav1.TableColumnDefinition{}, Rows: []metav1.TableRow{}}
	if columns {
		t.ColumnDefinitions = table.Columns(enc.Kind, enc.Layout)
	}
	return t
}

// tableRow is an object as a row, with as much of it beside the cells as the client asks for.
func (enc *Encoder) tableRow(e *registry.Entry, now time.Time) (metav1.TableRow, error) {
	row := metav1.TableRow{Cells: table.Row(enc.Kind, e.Object(), enc.Layout, now)}
	switch enc.IncludeObject {
	case "None":
	case "Object":
		e, err := enc.shown(e)
		if err != nil {
			return row, err
		}
		row.Object.Raw = e.AppendJSON(nil)
	default:
		raw, err := json.Marshal(partialMetadata(e.Object()))
		if err != nil {
			return row, apierrors.NewInternalError(err)
		}
		row.Object.Raw = raw
	}
	return row, nil
}
