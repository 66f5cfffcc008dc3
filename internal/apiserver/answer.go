package apiserver

import (
	"encoding/json"
	"net/http"
	"strconv"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"minik8s/internal/api"
	"minik8s/internal/api/table"
	"minik8s/internal/registry"
)

// answer writes one object in the form the client asked for.
func (r *request) answer(code int, e *registry.Entry) error {
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
		return r.encodeTable([]*registry.Entry{e}, e.Revision(), "", nil, true)
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

// answerList writes a list in the form the client asked for.
func (r *request) answerList(l *registry.List) error {
	body, err := r.encodeList(l)
	if err != nil {
		return err
	}
	return r.send(http.StatusOK, body)
}

func (r *request) encodeList(l *registry.List) ([]byte, error) {
	lm := metav1.ListMeta{ResourceVersion: strconv.FormatInt(l.Revision, 10), Continue: l.Continue, RemainingItemCount: l.Remaining}
	switch {
	case r.neg.as == asTable:
		return r.encodeTable(l.Entries, l.Revision, l.Continue, l.Remaining, true)
	case r.neg.as == asPartial || r.neg.as == asPartialList:
		pl := &metav1.PartialObjectMetadataList{TypeMeta: metav1.TypeMeta{Kind: asPartialList, APIVersion: "meta.k8s.io/v1"}, ListMeta: lm}
		for _, e := range l.Entries {
			pl.Items = append(pl.Items, *partial(e.Object()))
		}
		return r.encodeObject(pl)
	case r.neg.format == protobufFormat:
		return r.encodeProtobufList(l, lm)
	}
	meta, err := json.Marshal(lm)
	if err != nil {
		return nil, apierrors.NewInternalError(err)
	}
	return listJSON(r.kind, meta, l.Entries), nil
}

// listJSON joins the stored bytes of the items; nothing is decoded or encoded.
func listJSON(kind *api.Kind, meta []byte, entries []*registry.Entry) []byte {
	n := 128 + len(meta)
	for _, e := range entries {
		n += e.Size() + 48
	}
	b := make([]byte, 0, n)
	b = append(b, `{"kind":"`+kind.Kind+`List","apiVersion":"`+kind.APIVersion()+`","metadata":`...)
	b = append(b, meta...)
	b = append(b, `,"items":[`...)
	for i, e := range entries {
		if i > 0 {
			b = append(b, ',')
		}
		b = e.AppendJSON(b)
	}
	return append(b, ']', '}', '\n')
}

func (r *request) encodeProtobufList(l *registry.List, lm metav1.ListMeta) ([]byte, error) {
	list := r.kind.NewList()
	items := make([]runtime.Object, len(l.Entries))
	for i, e := range l.Entries {
		items[i] = e.Object()
	}
	if err := meta.SetList(list, items); err != nil {
		return nil, apierrors.NewInternalError(err)
	}
	li, err := meta.ListAccessor(list)
	if err != nil {
		return nil, apierrors.NewInternalError(err)
	}
	li.SetResourceVersion(lm.ResourceVersion)
	li.SetContinue(lm.Continue)
	li.SetRemainingItemCount(lm.RemainingItemCount)
	list.GetObjectKind().SetGroupVersionKind(r.kind.GVK().GroupVersion().WithKind(r.kind.Kind + "List"))
	return r.encodeObject(list)
}

// encodeTable is objects as the rows that kubectl get shows.
func (r *request) encodeTable(entries []*registry.Entry, rev int64, cont string, remaining *int64, columns bool) ([]byte, error) {
	layout := table.Layout(r.query.Get("layout"))
	t := &metav1.Table{TypeMeta: metav1.TypeMeta{Kind: "Table", APIVersion: "meta.k8s.io/v1"},
		ListMeta: metav1.ListMeta{ResourceVersion: strconv.FormatInt(rev, 10), Continue: cont, RemainingItemCount: remaining},
		Rows:     make([]metav1.TableRow, 0, len(entries))}
	if columns {
		t.ColumnDefinitions = table.Columns(r.kind, layout)
	} else {
		t.ColumnDefinitions = []metav1.TableColumnDefinition{}
	}
	include := r.query.Get("includeObject")
	now := time.Now()
	for _, e := range entries {
		row := metav1.TableRow{Cells: table.Row(r.kind, e.Object(), layout, now)}
		switch include {
		case "None":
		case "Object":
			row.Object.Raw = e.AppendJSON(nil)
		default:
			raw, err := json.Marshal(partial(e.Object()))
			if err != nil {
				return nil, apierrors.NewInternalError(err)
			}
			row.Object.Raw = raw
		}
		t.Rows = append(t.Rows, row)
	}
	b, err := json.Marshal(t)
	if err != nil {
		return nil, apierrors.NewInternalError(err)
	}
	return append(b, '\n'), nil
}
