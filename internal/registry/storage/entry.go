package storage

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"

	kjson "sigs.k8s.io/json"

	"minik8s/internal/api"
)

// Entry is one version of one object: the bytes as stored, and the object decoded from them once, unless its kind is kept as
// bytes.
type Entry struct {
	kind *api.Kind
	key  string // namespace/name, or name
	rev  int64
	// text is canonical JSON without a resourceVersion, compressed with dict, or as it is if that is nil.
	text []byte
	dict *dictionary
	// implied: it is not stored, another object implies it.
	implied bool
	// past: it was deleted, or there is a later version.
	past atomic.Bool
	// siblings is where the decoded object shares memory with others; nil: it does not.
	siblings *siblings
	obj      atomic.Pointer[api.Object]
}

// Revision returns the revision of this version, which is the object's resourceVersion.
func (e *Entry) Revision() int64 { return e.rev }

// Key returns namespace/name, or name for kinds without a namespace.
func (e *Entry) Key() string { return e.key }

// Implied reports whether the object is not stored, but implied by another; see api.Implied.
func (e *Entry) Implied() bool { return e.implied }

// Equal reports whether the stored object is the one of raw, which comes from Encode. The order of fields does not
// matter: the daemon that stored the object may have had a Go type with another order.
func (e *Entry) Equal(raw []byte) bool {
	if e.Size() != len(raw) {
		return false
	}
	text := e.plain()
	return bytes.Equal(text, raw) || reordered(text, raw)
}

// reordered reports whether two JSON texts differ in nothing but the order of their fields. Texts of different length,
// or with different bytes, need not be decoded.
func reordered(a, b []byte) bool {
	if len(a) != len(b) {
		return false
	}
	sum := 0
	for i := range a {
		sum += int(a[i]) - int(b[i])
	}
	if sum != 0 {
		return false
	}
	var x, y any
	return kjson.UnmarshalCaseSensitivePreserveInts(a, &x) == nil && kjson.UnmarshalCaseSensitivePreserveInts(b, &y) == nil &&
		reflect.DeepEqual(x, y)
}

// Object returns the decoded object. It is shared and must never be changed.
func (e *Entry) Object() api.Object {
	if p := e.obj.Load(); p != nil {
		return *p
	}
	obj := e.kind.New()
	err := kjson.UnmarshalCaseSensitivePreserveInts(e.plain(), obj)
	if err == nil && KeyOf(e.kind, obj.GetNamespace(), obj.GetName()) != e.key {
		err = fmt.Errorf("the bytes are those of %q", KeyOf(e.kind, obj.GetNamespace(), obj.GetName()))
	}
	if err != nil {
		obj = e.damaged(err)
	}
	if e.rev != 0 {
		obj.SetResourceVersion(strconv.FormatInt(e.rev, 10))
	}
	if e.kind.AsBytes {
		return obj
	}
	settle(obj)
	if e.siblings != nil {
		e.siblings.share(&obj, nil)
	}
	e.obj.CompareAndSwap(nil, &obj)
	if e.siblings != nil && e.past.Load() { // somebody reads it late
		e.siblings.forget(&obj)
	}
	return *e.obj.Load()
}

// take has the entry, which nobody else knows yet, have an object that was just encoded, so that it need not be decoded again.
// prev is the version before it, or nil.
func (e *Entry) take(obj api.Object, prev *Entry) {
	obj.SetResourceVersion(strconv.FormatInt(e.rev, 10))
	var before api.Object
	if prev != nil {
		if p := prev.obj.Load(); p != nil {
			before = *p
		}
	}
	if e.siblings != nil {
		e.siblings.share(&obj, before)
	}
	e.obj.Store(&obj)
}

// end says that the object was deleted, or that there is a later version.
func (e *Entry) end() {
	e.past.Store(true)
	if p := e.obj.Load(); p != nil && e.siblings != nil {
		e.siblings.forget(p)
	}
}

// damagedAnnotation says why an object cannot be read.
const damagedAnnotation = "minik8s.io/damaged"

// damaged is what is shown of an object that cannot be read. Only output of Encode is ever stored, so its bytes were
// damaged from outside. It has its name, so that it can be seen and deleted.
func (e *Entry) damaged(why error) api.Object {
	ns, name, ok := strings.Cut(e.key, "/")
	if !ok {
		ns, name = "", e.key
	}
	obj := e.kind.New()
	obj.SetNamespace(ns)
	obj.SetName(name)
	obj.SetAnnotations(map[string]string{damagedAnnotation: why.Error()})
	obj.GetObjectKind().SetGroupVersionKind(e.kind.GVK())
	return obj
}

// intact reports whether the stored bytes may be sent as they are. Bytes that nobody has decoded yet are judged by
// their beginning and end only: decoding each object for each answer would cost more than all the rest.
func (e *Entry) intact(text []byte, head string) bool {
	if p := e.obj.Load(); p != nil && (*p).GetAnnotations()[damagedAnnotation] != "" {
		return false
	}
	return bytes.HasPrefix(text, []byte(head)) && text[len(text)-1] == '}'
}

// AppendJSON appends the object to dst as it is sent to clients: the stored bytes with the resourceVersion inserted.
// Nothing is decoded or encoded, but for a damaged object.
func (e *Entry) AppendJSON(dst []byte) []byte {
	const room = len(`"resourceVersion":"",`) + 20
	head, at := jsonHead(e.kind), len(dst)
	dst = e.appendText(slices.Grow(dst, e.Size()+room))
	text := dst[at:]
	if !e.intact(text, head) {
		if raw, err := json.Marshal(e.Object()); err == nil {
			return append(dst[:at], raw...)
		}
	}
	if e.rev == 0 { // a dry run of a create has no revision
		return dst
	}
	var buf [room]byte
	version := append(buf[:0], `"resourceVersion":"`...)
	version = strconv.AppendInt(version, e.rev, 10)
	version = append(version, '"')
	if text[len(head)] != '}' {
		version = append(version, ',')
	}
	return slices.Insert(dst, at+len(head), version...)
}

// jsonHead is the beginning of every stored object of a kind. The revision is inserted after it without reading the
// rest.
func jsonHead(k *api.Kind) string {
	return `{"kind":"` + k.Kind + `","apiVersion":"` + k.APIVersion() + `","metadata":{`
}

// Encode returns the object as it is stored.
func Encode(kind *api.Kind, obj api.Object) ([]byte, error) {
	obj.SetResourceVersion("")
	obj.GetObjectKind().SetGroupVersionKind(kind.GVK())
	raw, err := json.Marshal(obj)
	if err != nil {
		return nil, err
	}
	if bytes.HasPrefix(raw, []byte(jsonHead(kind))) {
		return raw, nil
	}
	return headFirst(kind, raw)
}

// headFirst moves kind, apiVersion and metadata to the front, for Go types with another field order. Below the head,
// nothing depends on the order.
func headFirst(kind *api.Kind, raw []byte) ([]byte, error) {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(raw, &fields); err != nil {
		return nil, err
	}
	meta := fields["metadata"]
	if len(meta) < 2 || meta[0] != '{' {
		return nil, fmt.Errorf("the JSON of a %s has no metadata", kind.Kind)
	}
	out := append([]byte(jsonHead(kind)), meta[1:]...)
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		if name == "kind" || name == "apiVersion" || name == "metadata" {
			continue
		}
		quoted, err := json.Marshal(name)
		if err != nil {
			return nil, err
		}
		out = append(append(append(append(out, ','), quoted...), ':'), fields[name]...)
	}
	return append(out, '}'), nil
}

// NewEntry returns an entry of an object that was just encoded, so that it need not be decoded again.
func NewEntry(kind *api.Kind, key string, rev int64, raw []byte, obj api.Object) *Entry {
	e := &Entry{kind: kind, key: key, rev: rev, text: raw}
	if obj != nil {
		if rev != 0 {
			obj.SetResourceVersion(strconv.FormatInt(rev, 10))
		}
		e.obj.Store(&obj)
	}
	return e
}

// at returns the same object at a later revision, which a watch sends for a deletion.
func (e *Entry) at(rev int64) *Entry {
	later := &Entry{kind: e.kind, key: e.key, rev: rev, text: e.text, dict: e.dict, implied: e.implied}
	if p := e.obj.Load(); p != nil {
		obj := (*p).DeepCopyObject().(api.Object)
		obj.SetResourceVersion(strconv.FormatInt(rev, 10))
		later.obj.Store(&obj)
	}
	return later
}

// Root is the prefix of all stored objects.
const Root = "/registry/"

// PrefixOf returns the prefix of the keys of a kind's objects.
func PrefixOf(k *api.Kind) string {
	if k.Group == "" {
		return Root + k.Plural + "/"
	}
	return Root + k.Group + "/" + k.Plural + "/"
}

// KeyOf returns namespace/name, or name for kinds without a namespace.
func KeyOf(k *api.Kind, namespace, name string) string {
	if k.Namespaced {
		return namespace + "/" + name
	}
	return name
}

// Shallow copies the outermost struct only, with its own metadata strings; everything behind pointers, maps and
// slices is shared. This is safe for objects that are not changed any more.
func Shallow(obj api.Object) api.Object {
	src := reflect.ValueOf(obj).Elem()
	dst := reflect.New(src.Type())
	dst.Elem().Set(src)
	return dst.Interface().(api.Object)
}

// In returns an entry converted to another view of its kind.
func (e *Entry) In(view *api.Kind) (*Entry, error) {
	obj := view.View.Shown(e.Object())
	raw, err := Encode(view, obj)
	if err != nil {
		return nil, err
	}
	return NewEntry(view, e.key, e.rev, raw, obj), nil
}
