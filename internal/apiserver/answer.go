package apiserver

import (
	"encoding/json"
	"strconv"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"minik8s/internal/api/table"
	"minik8s/internal/registry"
)

// answer writes one object in the form the client asked for.
func (r *request) answer(code int, e *registry.Entry) error {
	e, err := r.shown(e)
	if err != nil {
		return err
	}
	body, err := r.encode(e)
	if err != nil {
		return err
	}
	return r.send(code, body)
}

// send writes a body that is JSON, or protobuf where that was asked for.
func (r *request) send(code int, body []byte) error {
	if r.neg.format == yamlFormat {
		y, err := toYAML(body)
		if err != nil {
			return apierrors.NewInternalError(err)
		}
		body = y
	}
	h := r.Response().Header()
	h.Set("Content-Type", r.neg.contentType())
	h.Set("Content-Length", strconv.Itoa(len(body)))
	h.Set("Cache-Control", "no-cache, private")
	r.Response().WriteHeader(code)
	_, err := r.Response().Write(body)
	return err
}

// encode is one object as JSON, or protobuf where that was asked for.
func (r *request) encode(e *registry.Entry) ([]byte, error) {
	switch r.neg.as {
	case asTable:
		return r.encodeTable(e, true)
	case asPartial, asPartialList:
		return r.encodeObject(partial(e.Object()))
	}
	if r.neg.format == protobufFormat {
		return r.encodeObject(e.Object())
	}
	return append(e.AppendJSON(nil), '\n'), nil
}

func (r *request) encodeObject(obj runtime.Object) ([]byte, error) {
	if r.neg.format == protobufFormat {
		b, err := encodeProtobuf(obj)
		if err != nil {
			return nil, apierrors.NewInternalError(err)
		}
		return b, nil
	}
	b, err := json.Marshal(obj)
	if err != nil {
		return nil, apierrors.NewInternalError(err)
	}
	return append(b, '\n'), nil
}

// encodeTable is one object as the row that kubectl get shows; columns says whether their names go along.
func (r *request) encodeTable(e *registry.Entry, columns bool) ([]byte, error) {
	t := r.table(metav1.ListMeta{ResourceVersion: strconv.FormatInt(e.Revision(), 10)}, columns)
	row, err := r.tableRow(e, time.Now())
	if err != nil {
		return nil, err
	}
	t.Rows = []metav1.TableRow{row}
	b, err := json.Marshal(t)
	if err != nil {
		return nil, apierrors.NewInternalError(err)
	}
	return append(b, '\n'), nil
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
