package images

import (
	"errors"
	"fmt"
	"time"

	"minik8s/internal/kubelet/plan"
)

// A failed pull is retried after 10 s, then after twice as long each time, up to 5 min, as in Kubernetes
// (imageBackOff in pkg/kubelet/kubelet.go). An image that is added in another way ends the wait:
// plan.State.RetryImages.
const (
	minRetryDelay = 10 * time.Second
	maxRetryDelay = 5 * time.Minute
	// minInspectDelay is for an error of the runtime, which is not the image's fault.
	minInspectDelay = time.Second
)

// pullFailed is the error of a pull that failed.
func pullFailed(image string, err error) error {
	return &plan.ActionError{Reason: plan.ReasonErrImagePull, Err: fmt.Errorf("failed to pull image %q: %w", image, err),
		EventReason: "Failed", Event: fmt.Sprintf("Failed to pull image %q: %v", image, err),
		MinDelay: minRetryDelay, MaxDelay: maxRetryDelay}
}

// invalidName is the error of an invalid image name. The pod's image may be changed, so it is retried.
func invalidName(image string, err error) error {
	msg := fmt.Sprintf("Failed to apply default image tag %q: %v", image, err)
	return &plan.ActionError{Reason: "InvalidImageName", Err: errors.New(msg), EventReason: "InspectFailed", Event: msg,
		MinDelay: minRetryDelay, MaxDelay: maxRetryDelay}
}

// neverPulled is the error of an image that is missing and must not be pulled. It may be imported, so it is retried.
func neverPulled(image string) error {
	msg := fmt.Sprintf("Container image %q is not present with pull policy of Never", image)
	return &plan.ActionError{Reason: "ErrImageNeverPull", Err: errors.New(msg), EventReason: "ErrImageNeverPull", Event: msg,
		MinDelay: minRetryDelay, MaxDelay: maxRetryDelay}
}

// inspectFailed is the error of a runtime that could not say whether it has the image.
func inspectFailed(image string, err error) error {
	return &plan.ActionError{Reason: "ImageInspectError", Err: err,
		EventReason: "Failed", Event: fmt.Sprintf("Failed to inspect image %q: %v", image, err),
		MinDelay: minInspectDelay, MaxDelay: maxRetryDelay}
}
