package aggregator

import (
	"encoding/json"
	"strings"

	"github.com/labstack/echo/v4"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"minik8s/internal/apiserver/encoding"
)

// encoder encodes the answers to a request. They have no protobuf: not all of their types know it.
func encoder(c echo.Context) func(runtime.Object, func() *metav1.Table) (string, []byte, error) {
	return func(obj runtime.Object, table func() *metav1.Table) (string, []byte, error) {
		accept := strings.ReplaceAll(c.Request().Header.Get("Accept"), encoding.ProtobufType, "application/none")
		out, err := encoding.Negotiate(accept)
		if err == nil && out.As != "" && (out.As != encoding.Table || table == nil) {
			out, err = encoding.Negotiate(withoutForms(accept))
		}
		if err != nil {
			return "", nil, err
		}
		if out.As == encoding.Table {
			obj = shownTable(table(), c.QueryParam("includeObject"))
		}
		body, err := json.Marshal(obj)
		if err != nil {
			return "", nil, err
		}
		body, err = out.Body(body)
		return out.ContentType(), body, err
	}
}

// withoutForms leaves out of an Accept header the clauses that ask for another form of the object. What is left of one
// that asks for nothing else is refused.
func withoutForms(accept string) string {
	var plain []string
	for clause := range strings.SplitSeq(accept, ",") {
		if !strings.Contains(clause, "as=") {
			plain = append(plain, clause)
		}
	}
	if len(plain) == 0 {
		return "application/none"
	}
	return strings.Join(plain, ",")
}

// shownTable leaves as much of the rows' objects as the client asks for: None, Object, or their metadata.
func shownTable(t *metav1.Table, include string) *metav1.Table {
	t.TypeMeta = metav1.TypeMeta{Kind: encoding.Table, APIVersion: "meta.k8s.io/v1"}
	if t.Rows == nil {
		t.Rows = []metav1.TableRow{}
	}
	for i := range t.Rows {
		o := &t.Rows[i].Object
		switch include {
		case "Object":
		case "None":
			*o = runtime.RawExtension{}
		default:
			m, err := meta.Accessor(o.Object)
			if err != nil { // it has no metadata
				*o = runtime.RawExtension{}
				continue
			}
			p := meta.AsPartialObjectMetadata(m)
			p.TypeMeta = metav1.TypeMeta{Kind: encoding.PartialMetadata, APIVersion: "meta.k8s.io/v1"}
			o.Object = p
		}
	}
	return t
}
