package patch

import (
	"bytes"
	"fmt"
	"net/http"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/strategicpatch"

	"minik8s/internal/api"
)

// A JSON patch is bounded as in Kubernetes: in its operations, and in how many bytes its copies add up to.
const (
	maxOperations = 10000
	maxCopies     = 3 << 20
)

// LimitCopies sets the second bound. The library has it as one variable for the whole process, so it is set once, by
// whoever builds the registry, before anything is patched.
func LimitCopies() { jsonpatch.AccumulatedCopySizeLimit = maxCopies }

// Apply is the document before, changed by a patch of one of the three types that need nothing else: JSON patch, merge
// patch, strategic merge patch. kind says by which keys the last merges lists. The errors are 400, 413, 415 and 422.
func Apply(kind *api.Kind, name string, pt types.PatchType, before, patch []byte) ([]byte, error) {
	bad := func(err error) error {
		return apierrors.NewBadRequest("the patch cannot be applied: " + err.Error())
	}
	switch pt {
	case types.JSONPatchType:
		ops, err := jsonpatch.DecodePatch(patch)
		if err != nil {
			return nil, bad(err)
		}
		if len(ops) > maxOperations {
			return nil, apierrors.NewRequestEntityTooLargeError(fmt.Sprintf("a JSON patch may have %d operations, this one has %d", maxOperations, len(ops)))
		}
		after, err := ops.Apply(before)
		if err != nil {
			return nil, unappliable(kind, name, err)
		}
		return after, nil
	case types.MergePatchType:
		after, err := jsonpatch.MergePatch(before, patch)
		if err != nil {
			return nil, bad(err)
		}
		return after, nil
	case types.StrategicMergePatchType:
		if err := checkStrategic(kind, patch); err != nil {
			return nil, bad(err)
		}
		after, err := strategicpatch.StrategicMergePatch(before, patch, kind.New())
		if err != nil {
			return nil, bad(err)
		}
		return after, nil
	}
	return nil, Unsupported(pt)
}

// NamesRevision says whether a patch asks for a certain resourceVersion.
func NamesRevision(patch []byte) bool { return bytes.Contains(patch, []byte("resourceVersion")) }

// Unsupported is 415: no such type of patches is served.
func Unsupported(pt types.PatchType) error {
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
