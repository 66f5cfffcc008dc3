package decode

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	kjson "sigs.k8s.io/json"
)

// mostMistakes bounds how many mistakes one error lists. With more than that, the document is the wrong one
// altogether.
const mostMistakes = 10

// Explain says in terms of the manifest why a document could not be decoded into a value: the path of every part that
// does not fit, what is expected there, and what was given. err is the decoder's error, which speaks of Go types and
// names at most one part, without its path. Explain walks the document a second time, next to the value's type; only
// a document that has already failed pays for that.
func Explain(data []byte, into any, err error) string {
	if ok, offset := kjson.SyntaxErrorOffset(err); ok {
		return position(data, offset) + plainJSON(err)
	}
	var doc any
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber()
	if dec.Decode(&doc) != nil {
		return plainJSON(err)
	}
	var m mistakes
	m.walk("", doc, reflect.TypeOf(into))
	switch {
	case len(m) == 0: // a key given twice, or with other upper and lower case than ours
		return plainJSON(err)
	case len(m) > mostMistakes:
		return fmt.Sprintf("%s; and %d more", strings.Join(m[:mostMistakes], "; "), len(m)-mostMistakes)
	}
	return strings.Join(m, "; ")
}

// position turns an offset into a line and column. For a document of one line it gives the column only.
func position(data []byte, offset int64) string {
	before := data[:min(max(offset-1, 0), int64(len(data)))]
	line, column := bytes.Count(before, []byte("\n"))+1, len(before)-bytes.LastIndexByte(before, '\n')
	if bytes.IndexByte(data, '\n') < 0 {
		return fmt.Sprintf("column %d: ", column)
	}
	return fmt.Sprintf("line %d, column %d: ", line, column)
}

// plainJSON returns a decoder's error without the decoder's name.
func plainJSON(err error) string {
	switch e := err.(type) {
	case *json.UnmarshalTypeError:
		return strings.TrimPrefix(fmt.Sprintf("%s: %s does not belong there", e.Field, e.Value), ": ")
	}
	if err == io.ErrUnexpectedEOF || err == io.EOF {
		return "it ends too early"
	}
	return strings.TrimPrefix(err.Error(), "json: ")
}

// mistakes lists the parts of a document that do not fit the type, each with its path.
type mistakes []string

func (m *mistakes) add(path, expected string, got any) {
	text := fmt.Sprintf("expected %s, got %s", expected, given(got))
	if path != "" {
		text = path + ": " + text
	}
	*m = append(*m, text)
}

var unmarshaler = reflect.TypeFor[json.Unmarshaler]()

// walk compares a part of a document with the type that it is decoded into. It ignores keys that the type does not
// have: the strict decoder reports those.
func (m *mistakes) walk(path string, doc any, t reflect.Type) {
	if doc == nil { // null means absent everywhere
		return
	}
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if reflect.PointerTo(t).Implements(unmarshaler) {
		m.readsItself(path, doc, t)
		return
	}
	switch t.Kind() {
	case reflect.Struct:
		m.object(path, doc, fieldsOf(t))
	case reflect.Map:
		m.object(path, doc, func(string) reflect.Type { return t.Elem() })
	case reflect.Slice:
		m.list(path, doc, t.Elem())
	case reflect.String:
		if _, ok := doc.(string); !ok {
			m.add(path, "a string", doc)
			m.quote(doc)
		}
	case reflect.Bool:
		if _, ok := doc.(bool); !ok {
			m.add(path, "true or false", doc)
		}
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		m.whole(path, doc, t.Bits(), func(s string) error { _, err := strconv.ParseInt(s, 10, t.Bits()); return err })
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		m.whole(path, doc, t.Bits(), func(s string) error { _, err := strconv.ParseUint(s, 10, t.Bits()); return err })
	case reflect.Float32, reflect.Float64:
		if _, ok := doc.(json.Number); !ok {
			m.add(path, "a number", doc)
		}
	}
}

// object walks a JSON object. typeOf returns the type of a key's value, nil if the key is unknown.
func (m *mistakes) object(path string, doc any, typeOf func(key string) reflect.Type) {
	object, ok := doc.(map[string]any)
	if !ok {
		m.add(path, "an object", doc)
		return
	}
	for _, key := range slices.Sorted(maps.Keys(object)) {
		if t := typeOf(key); t != nil {
			m.walk(below(path, key), object[key], t)
		}
	}
}

func (m *mistakes) list(path string, doc any, t reflect.Type) {
	if t.Kind() == reflect.Uint8 {
		m.bytes(path, doc)
		return
	}
	list, ok := doc.([]any)
	if !ok {
		m.add(path, "a list", doc)
		return
	}
	for i := range list {
		m.walk(fmt.Sprintf("%s[%d]", path, i), list[i], t)
	}
}

// bytes does not repeat the given value, because bytes are usually secrets.
func (m *mistakes) bytes(path string, doc any) {
	text, ok := doc.(string)
	if !ok {
		m.add(path, "a string in base64", doc)
		return
	}
	if _, err := base64.StdEncoding.DecodeString(text); err != nil {
		*m = append(*m, path+": expected a string in base64, got another; plain text goes into a Secret's stringData or a ConfigMap's data")
	}
}

func (m *mistakes) whole(path string, doc any, bits int, parse func(string) error) {
	n, ok := doc.(json.Number)
	if !ok {
		m.add(path, "a whole number", doc)
		return
	}
	switch err := parse(n.String()); {
	case errors.Is(err, strconv.ErrRange):
		m.add(path, fmt.Sprintf("a whole number of at most %d bits", bits), doc)
	case err != nil:
		m.add(path, "a whole number", doc)
	}
}

// quote adds to the last mistake how to quote a string that looks like another type.
func (m *mistakes) quote(doc any) {
	switch v := doc.(type) {
	case bool, json.Number:
		(*m)[len(*m)-1] += fmt.Sprintf(` (a string is written "%v")`, v)
	}
}

// inWords describes what types with their own decoding expect.
var inWords = map[reflect.Type]string{
	reflect.TypeFor[resource.Quantity]():  "a quantity such as 2, 500m or 1Gi",
	reflect.TypeFor[intstr.IntOrString](): "a whole number or a string",
	reflect.TypeFor[metav1.Time]():        "a time such as 2006-01-02T15:04:05Z",
	reflect.TypeFor[metav1.MicroTime]():   "a time such as 2006-01-02T15:04:05.000000Z",
	reflect.TypeFor[metav1.Duration]():    "a duration such as 90s or 1h30m",
}

func (m *mistakes) readsItself(path string, doc any, t reflect.Type) {
	data, err := json.Marshal(doc)
	if err != nil {
		return
	}
	err = reflect.New(t).Interface().(json.Unmarshaler).UnmarshalJSON(data)
	if err == nil {
		return
	}
	words := inWords[t]
	if words == "" {
		words = "something else (" + plainJSON(err) + ")"
	}
	m.add(path, words, doc)
}

// fieldsOf returns a struct's fields by their JSON names, including those of embedded structs without a name of their
// own.
func fieldsOf(t reflect.Type) func(key string) reflect.Type {
	fields := map[string]reflect.Type{}
	collectFields(t, fields)
	return func(key string) reflect.Type { return fields[key] }
}

func collectFields(t reflect.Type, into map[string]reflect.Type) {
	for i := range t.NumField() {
		f := t.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		inner := f.Type
		if inner.Kind() == reflect.Pointer {
			inner = inner.Elem()
		}
		switch {
		case name == "-" || !f.IsExported() && !f.Anonymous:
		case name == "" && f.Anonymous && inner.Kind() == reflect.Struct:
			collectFields(inner, into)
		case name == "":
			into[f.Name] = f.Type
		default:
			into[name] = f.Type
		}
	}
}

var plainKey = regexp.MustCompile(`^[A-Za-z0-9_-]+$`)

// below returns the path of a key's value. Keys with dots and slashes are put in brackets.
func below(path, key string) string {
	switch {
	case !plainKey.MatchString(key):
		return path + "[" + key + "]"
	case path == "":
		return key
	}
	return path + "." + key
}

// given describes a part of a document in a few words.
func given(doc any) string {
	switch v := doc.(type) {
	case string:
		if r := []rune(v); len(r) > 60 {
			v = string(r[:60]) + "..."
		}
		return fmt.Sprintf("the string %q", v)
	case json.Number:
		return "the number " + v.String()
	case bool:
		return fmt.Sprintf("%t", v)
	case []any:
		return "a list"
	}
	return "an object"
}
