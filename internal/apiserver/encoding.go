package apiserver

import (
	"bytes"
	"encoding/json"
	"strconv"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"

	"minik8s/internal/api/table"
	"minik8s/internal/registry"
)

// Here objects become bytes, for answers, items of lists and events of watches. What is appended is JSON, or protobuf
// where that was asked for; YAML is made of the JSON when an answer is whole (send).

// appendEntry appends an object in the form that the client asked for: itself, its metadata, or a Table of one row;
// columns says whether the names of the columns go along.
func (r *request) appendEntry(dst []byte, e *registry.Entry, columns bool) ([]byte, error) {
	switch r.neg.as {
	case asTable:
		t := r.table(metav1.ListMeta{ResourceVersion: strconv.FormatInt(e.Revision(), 10)}, columns)
		row, err := r.tableRow(e, time.Now())
		if err != nil {
			return dst, err
		}
		t.Rows = append(t.Rows, row)
		return appendJSON(dst, t)
	case asPartial, asPartialList:
		return r.appendObject(dst, partial(e.Object()))
	}
	e, err := r.shown(e)
	if err != nil {
		return dst, err
	}
	if r.neg.format == protobufFormat {
		return r.appendObject(dst, e.Object())
	}
	return e.AppendJSON(dst), nil
}

// appendObject appends what has no stored bytes.
func (r *request) appendObject(dst []byte, obj runtime.Object) ([]byte, error) {
	if r.neg.format != protobufFormat {
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

// appendEvent appends an event of a watch, whose object is appended by object: a line of JSON, or protobuf behind its
// length.
func (r *request) appendEvent(dst []byte, typ string, object func(dst []byte) ([]byte, error)) ([]byte, error) {
	if r.neg.format == protobufFormat {
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

// table is a Table without rows.
func (r *request) table(lm metav1.ListMeta, columns bool) *metav1.Table {
	t := &metav1.Table{TypeMeta: metav1.TypeMeta{Kind: "Table", APIVersion: "meta.k8s.io/v1"}, ListMeta: lm,
		ColumnDefinitions: []metav1.TableColumnDefinition{}, Rows: []metav1.TableRow{}}
	if columns {
		t.ColumnDefinitions = table.Columns(r.kind, r.layout())
	}
	return t
}

func (r *request) layout() table.Layout { return table.Layout(r.query.Get("layout")) }

// tableRow is an object as a row, with as much of it beside the cells as the client asks for.
func (r *request) tableRow(e *registry.Entry, now time.Time) (metav1.TableRow, error) {
	row := metav1.TableRow{Cells: table.Row(r.kind, e.Object(), r.layout(), now)}
	switch r.query.Get("includeObject") {
	case "None":
	case "Object":
		e, err := r.shown(e)
		if err != nil {
			return row, err
		}
		row.Object.Raw = e.AppendJSON(nil)
	default:
		raw, err := json.Marshal(partial(e.Object()))
		if err != nil {
			return row, apierrors.NewInternalError(err)
		}
		row.Object.Raw = raw
	}
	return row, nil
}
