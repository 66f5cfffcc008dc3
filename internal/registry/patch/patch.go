package patch

import (
	"bytes"
	"fmt"
	"net/http"
	"sync"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/strategicpatch"

	"minik8s/internal/api"
)

// A JSON patch is bounded as in Kubernetes: in its number of operations, and in the total size of its copies.
const (
	maxOperations = 10000
	maxCopies     = 3 << 20
)

// LimitCopies sets the second bound. The library keeps it in a variable for the whole process, so the code that
// builds the registry sets it, before any patch. A process with several registries, as a test, sets it once.
func LimitCopies() { limitCopies() }

var limitCopies = sync.OnceFunc(func() { jsonpatch.AccumulatedCopySizeLimit = maxCopies })

// Apply returns the document before, changed by a JSON patch, merge patch or strategic merge patch. kind gives the
// merge keys of lists for the strategic merge patch. The errors are 400, 413, 415 and 422.
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

// NamesRevision reports whether a patch requires a certain resourceVersion.
func NamesRevision(patch []byte) bool { return bytes.Contains(patch, []byte("resourceVersion")) }

// Unsupported returns 415: this patch type is not served.
func Unsupported(pt types.PatchType) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusUnsupportedMediaType, Reason: metav1.StatusReasonUnsupportedMediaType,
		Message: fmt.Sprintf("patches of type %q are not served; send %s, %s, %s or %s", pt,
			types.JSONPatchType, types.MergePatchType, types.StrategicMergePatchType, types.ApplyPatchType)}}
}

// unappliable returns the error for a JSON patch whose operations do not fit the object.
func unappliable(kind *api.Kind, name string, err error) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusUnprocessableEntity, Reason: metav1.StatusReasonInvalid,
		Message: fmt.Sprintf("the JSON patch does not fit %s %q: %s", kind, name, err),
		Details: &metav1.StatusDetails{Group: kind.Group, Kind: kind.Plural, Name: name,
			Causes: []metav1.StatusCause{{Type: metav1.CauseTypeFieldValueInvalid, Message: err.Error()}}}}}
}
