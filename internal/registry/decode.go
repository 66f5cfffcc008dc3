package registry

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"

	"minik8s/internal/api"
)

// Decode reads a manifest, JSON or YAML, of the kind that the request's path names. dialect, which
// may be nil, first makes a seed's form canonical. validation is Strict, Warn or Ignore: what to do
// about fields that the kind does not have, and about those given twice.
func Decode(kind *api.Kind, dialect func(map[string]any) ([]string, error), data []byte, validation string) (api.Object, []string, error) {
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
		if data, notes, err = canonical(kind, data, dialect); err != nil {
			return nil, nil, err
		}
	}
	obj := kind.New()
	unknown, err := kjson.UnmarshalStrict(data, obj)
	if err != nil {
		return nil, nil, apierrors.NewBadRequest(fmt.Sprintf("the body is not a valid %s: %s", kind.Kind, ExplainDecode(data, obj, err)))
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

// StrictError is a manifest with fields that its kind does not have, or with one given twice. The object
// that comes with it holds the rest, so that its other mistakes can be named too.
type StrictError struct{ Fields []string }

// Error implements error, in the words by which kubectl knows it.
func (e *StrictError) Error() string { return "strict decoding error: " + strings.Join(e.Fields, ", ") }

// asStatus is a strict error as a bad request; other errors are one already.
func asStatus(err error) error {
	var strict *StrictError
	if errors.As(err, &strict) {
		return apierrors.NewBadRequest(strict.Error())
	}
	return err
}

// Refuse is a strict error as what a client is told: with every other mistake of the object.
func (r *Registry) Refuse(q *Request, obj api.Object, strict *StrictError) error {
	msg := strict.Error()
	kind, s := q.Kind, r.Strategy(q.Kind)
	obj = q.stored(obj)
	if err := place(kind, q.Namespace, obj); err == nil {
		r.prepareCreate(kind, s, obj)
		if errs := r.mistakes(kind, s, obj); len(errs) > 0 {
			msg += "; and " + errs.ToAggregate().Error()
		}
	}
	return apierrors.NewBadRequest(msg)
}

func looksLikeJSON(data []byte) bool {
	t := bytes.TrimLeft(data, " \t\r\n")
	return len(t) > 0 && t[0] == '{'
}

// canonical runs a dialect over a document.
func canonical(kind *api.Kind, data []byte, dialect func(map[string]any) ([]string, error)) ([]byte, []string, error) {
	var doc map[string]any
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber()
	if err := dec.Decode(&doc); err != nil {
		return nil, nil, apierrors.NewBadRequest(fmt.Sprintf("the body is not a valid %s: %s", kind.Kind, ExplainDecode(data, doc, err)))
	}
	notes, err := dialect(doc)
	if err != nil {
		return nil, nil, apierrors.NewBadRequest(err.Error())
	}
	if notes == nil { // nothing was changed: keep the bytes, with their duplicates for the strict decoder
		return data, nil, nil
	}
	out, err := json.Marshal(doc)
	if err != nil {
		return nil, nil, apierrors.NewInternalError(err)
	}
	return out, notes, nil
}

// checkKind refuses a body of another kind than its path says; one that names none is taken as it is.
func checkKind(kind *api.Kind, obj api.Object) error {
	gvk := obj.GetObjectKind().GroupVersionKind()
	if gvk.Kind != "" && gvk.Kind != kind.Kind || gvk.Version != "" && gvk.GroupVersion() != kind.GVK().GroupVersion() {
		return apierrors.NewBadRequest(fmt.Sprintf("the body is a %s of %s, but the path is that of %s of %s",
			gvk.Kind, gvk.GroupVersion(), kind.Kind, kind.APIVersion()))
	}
	obj.GetObjectKind().SetGroupVersionKind(kind.GVK())
	return nil
}

// namesRevision says whether a patch asks for a certain resourceVersion.
func namesRevision(patch []byte) bool { return bytes.Contains(patch, []byte("resourceVersion")) }

func unsupportedPatch(pt types.PatchType) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusUnsupportedMediaType, Reason: metav1.StatusReasonUnsupportedMediaType,
		Message: fmt.Sprintf("patches of type %q are not served; send %s, %s, %s or %s", pt,
			types.JSONPatchType, types.MergePatchType, types.StrategicMergePatchType, types.ApplyPatchType)}}
}

// unappliable is a JSON patch whose operations do not fit the object.
func unappliable(kind *api.Kind, name string, err error) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusUnprocessableEntity, Reason: metav1.StatusReasonInvalid,
		Message: fmt.Sprintf("the JSON patch does not fit %s %q: %s", kind, name, err),
		Details: &metav1.StatusDetails{Group: kind.Group, Kind: kind.Plural, Name: name,
			Causes: []metav1.StatusCause{{Type: metav1.CauseTypeFieldValueInvalid, Message: err.Error()}}}}}
}

func conflictf(kind *api.Kind, name, format string, args ...any) error {
	return apierrors.NewConflict(kind.GR(), name, fmt.Errorf(format, args...))
}
