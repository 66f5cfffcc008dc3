package decode

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"

	"minik8s/internal/api"
)

// Manifest reads a manifest, JSON or YAML, of the kind that the request's path names. dialect, which may be nil,
// first converts a seed system's manifest to the canonical form. validation is Strict, Warn or Ignore: how to treat
// fields that the kind does not have and fields given twice. Errors are 400, except StrictError: it is not an API
// error yet, and comes with the object as far as it could be read.
func Manifest(kind *api.Kind, dialect func(map[string]any) ([]string, error), data []byte, validation string) (api.Object, []string, error) {
	strict := []string{}
	if !looksLikeJSON(data) {
		converted, err := yaml.YAMLToJSONStrict(data)
		if err != nil {
			if converted, err = yaml.YAMLToJSON(data); err != nil {
				return nil, nil, apierrors.NewBadRequest("the body is not valid YAML: " + err.Error())
			}
			strict = append(strict, "a key is given twice")
		}
		data = converted
	}
	var notes []string
	if dialect != nil {
		var err error
		if data, notes, err = Canonical(kind, data, dialect); err != nil {
			return nil, nil, err
		}
	}
	obj := kind.New()
	unknown, err := kjson.UnmarshalStrict(data, obj)
	if err != nil {
		return nil, nil, apierrors.NewBadRequest(fmt.Sprintf("the body is not a valid %s: %s", kind.Kind, Explain(data, obj, err)))
	}
	if err := checkKind(kind, obj); err != nil {
		return nil, nil, err
	}
	for _, e := range unknown {
		strict = append(strict, e.Error())
	}
	switch {
	case len(strict) == 0 || validation == metav1.FieldValidationIgnore:
	case validation == metav1.FieldValidationStrict:
		return obj, nil, &StrictError{Fields: strict}
	default:
		notes = append(notes, strict...)
	}
	return obj, notes, nil
}

// StrictError reports fields that the kind does not have, or fields given twice. The object returned with it holds
// the rest, so that its other mistakes can be reported too.
type StrictError struct{ Fields []string }

// Error implements error, in the wording that kubectl recognises.
func (e *StrictError) Error() string { return "strict decoding error: " + strings.Join(e.Fields, ", ") }

// BadRequest turns a strict error into a bad request (400); other errors are already API errors.
func BadRequest(err error) error {
	var strict *StrictError
	if errors.As(err, &strict) {
		return apierrors.NewBadRequest(strict.Error())
	}
	return err
}

func looksLikeJSON(data []byte) bool {
	t := bytes.TrimLeft(data, " \t\r\n")
	return len(t) > 0 && t[0] == '{'
}

// Canonical returns a document in JSON after its dialect was converted; notes say what was changed.
func Canonical(kind *api.Kind, data []byte, dialect func(map[string]any) ([]string, error)) ([]byte, []string, error) {
	var doc map[string]any
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber()
	if err := dec.Decode(&doc); err != nil {
		return nil, nil, apierrors.NewBadRequest(fmt.Sprintf("the body is not a valid %s: %s", kind.Kind, Explain(data, doc, err)))
	}
	notes, err := dialect(doc)
	if err != nil {
		return nil, nil, apierrors.NewBadRequest(err.Error())
	}
	if notes == nil { // unchanged: keep the bytes and their duplicate keys for the strict decoder
		return data, nil, nil
	}
	out, err := json.Marshal(doc)
	if err != nil {
		return nil, nil, apierrors.NewInternalError(err)
	}
	return out, notes, nil
}

// checkKind refuses a body of another kind than its path names; a body without a kind is accepted.
func checkKind(kind *api.Kind, obj api.Object) error {
	gvk := obj.GetObjectKind().GroupVersionKind()
	if gvk.Kind != "" && gvk.Kind != kind.Kind || gvk.Version != "" && gvk.GroupVersion() != kind.GVK().GroupVersion() {
		return apierrors.NewBadRequest(fmt.Sprintf("the body is a %s of %s, but the path is that of %s of %s",
			gvk.Kind, gvk.GroupVersion(), kind.Kind, kind.APIVersion()))
	}
	obj.GetObjectKind().SetGroupVersionKind(kind.GVK())
	return nil
}
