package storage

import (
	"context"
	"errors"
	"net/http"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"minik8s/internal/api"
	"minik8s/internal/store"
)

// Error turns an error of the store into an API error: 404, 409, 410, 413, 503, 504, 507, or else 500.
func Error(k *api.Kind, name string, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, store.ErrUnknown):
		// No Retry-After: a client that repeats it by itself would take its own first attempt for somebody else's.
		return apierrors.NewTimeoutError("a master, or etcd, was lost before it answered: the change may have been made, or not; read the object to see", 0)
	case errors.Is(err, store.ErrNotFound):
		return apierrors.NewNotFound(k.GR(), name)
	case errors.Is(err, store.ErrExists):
		return apierrors.NewAlreadyExists(k.GR(), name)
	case errors.Is(err, store.ErrConflict):
		return Conflict(k, name)
	case errors.Is(err, store.ErrCompacted):
		return apierrors.NewResourceExpired("the requested revision is too old: list again")
	case errors.Is(err, store.ErrTooLarge):
		return apierrors.NewRequestEntityTooLargeError("the object is larger than the store takes (1.5 MiB)")
	case errors.Is(err, store.ErrNoSpace):
		return &apierrors.StatusError{ErrStatus: metav1.Status{
			Status: metav1.StatusFailure, Code: http.StatusInsufficientStorage, Reason: "InsufficientStorage",
			Message: "the store is full: delete objects, raise etcd-quota, or free disk space under the data directory (with etcd-servers: make room in that etcd, " +
				"and clear its alarm with \"etcdctl alarm disarm\"); what was acknowledged before is safe",
		}}
	case errors.Is(err, store.ErrUnavailable):
		return &apierrors.StatusError{ErrStatus: metav1.Status{
			Status: metav1.StatusFailure, Code: http.StatusServiceUnavailable, Reason: metav1.StatusReasonServiceUnavailable,
			Message: "a majority of the masters (with etcd-servers: of that etcd's members) is away, so nothing can be read or changed; nothing was changed by this request; " +
				"if they are lost for good: \"minik8sd ctl etcd recover --help\" says what to do (with etcd-servers: put a snapshot back there with etcdutl)",
			Details: &metav1.StatusDetails{RetryAfterSeconds: 1},
		}}
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return apierrors.NewTimeoutError("the request ended before the store answered", 1)
	}
	return apierrors.NewInternalError(err)
}

// Conflict returns 409: another version is the newest.
func Conflict(k *api.Kind, name string) error {
	return apierrors.NewConflict(k.GR(), name, errors.New(
		"the object has been modified; please apply your changes to the latest version and try again"))
}

func expired(rev int64) error {
	return apierrors.NewResourceExpired("too old resource version: " + strconv.FormatInt(rev, 10))
}
