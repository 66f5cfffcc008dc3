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
	"minik8s/internal/clock"
	"minik8s/internal/registry"
)

// Encoder makes the bytes of one answer. It appends JSON, or protobuf if requested; YAML is converted from the JSON
// when an answer is whole (Body).
type Encoder struct {
	MediaType
	// Kind is the stored kind; View, if it is not nil, the kind that the client sees.
	Kind, View *api.Kind
	// IncludeObject is how much of an object comes with its row in a Table: None, Metadata (also ""), Object.
	IncludeObject string
	// Layout defines the columns of a Table.
	Layout table.Layout
}

// Served returns the kind as the client sees it.
func (enc *Encoder) Served() *api.Kind {
	if enc.View != nil {
		return enc.View
	}
	return enc.Kind
}

// shown returns an entry as the client sees it.
func (enc *Encoder) shown(e *registry.Entry) (*registry.Entry, error) {
	if enc.View == nil {
		return e, nil
	}
	return e.In(enc.View)
}

// Entry appends an object in the requested form: itself, its metadata, or a Table of one row; columns says whether
// the Table has its column names.
func (enc *Encoder) Entry(dst []byte, e *registry.Entry, columns bool) ([]byte, error) {
	switch enc.As {
	case Table:
		t := enc.table(metav1.ListMeta{ResourceVersion: strconv.FormatInt(e.Revision(), 10)}, columns)
		row, err := enc.tableRow(e, clock.Now())
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

// Object appends an object that has no stored bytes.
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

// Event appends an event of a watch: a line of JSON, or protobuf after its length. The callback object appends the
// event's object.
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

// Bookmark returns an empty object of the watched kind with a revision.
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

// Key names the encoding of an event's object for this client; watches with the same key share one. It returns false
// if the encoding is not worth sharing, or depends on options of this client only.
func (enc *Encoder) Key() (string, bool) {
	if enc.As == "" && enc.Format == JSON && enc.View == nil { // the stored bytes
		return "", false
	}
	if enc.Layout != table.Default || !slices.Contains([]string{"", "None", "Metadata", "Object"}, enc.IncludeObject) {
		return "", false
	}
	return strings.Join([]string{enc.Served().GVK().String(), strconv.Itoa(int(enc.Format)), enc.As, enc.IncludeObject}, "|"), true
}

// table returns a Table without rows.
func (enc *Encoder) table(lm metav1.ListMeta, columns bool) *metav1.Table {
	t := &metav1.Table{TypeMeta: metav1.TypeMeta{Kind: "Table", APIVersion: "meta.k8s.io/v1"}, ListMeta: lm,
		ColumnDefinitions: []metav1.TableColumnDefinition{}, Rows: []metav1.TableRow{}}
	if columns {
		t.ColumnDefinitions = table.Columns(enc.tableKind(), enc.Layout)
	}
	return t
}

// tableKind is the kind whose columns are shown: the stored one, unless the form that the client sees has its own.
func (enc *Encoder) tableKind() *api.Kind {
	if enc.View != nil && table.Has(enc.View) {
		return enc.View
	}
	return enc.Kind
}

// tableRow returns an object as a row, with as much of the object as the client asks for.
func (enc *Encoder) tableRow(e *registry.Entry, now time.Time) (metav1.TableRow, error) {
	kind, obj := enc.tableKind(), e.Object()
	if kind != enc.Kind {
		obj = kind.View.Shown(obj)
	}
	row := metav1.TableRow{Cells: table.Row(kind, obj, enc.Layout, now)}
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
