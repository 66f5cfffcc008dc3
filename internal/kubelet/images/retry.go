package images

import (
	"errors"
	"fmt"
	"time"

	"minik8s/internal/kubelet/plan"
)

// An image that could not be had is tried again after 10 s, then after twice as long each time, up to 5 min, as
// in Kubernetes (imageBackOff in pkg/kubelet/kubelet.go). An image that arrives by another way ends the wait:
// plan.State.RetryImages.
const (
	minRetryDelay = 10 * time.Second
	maxRetryDelay = 5 * time.Minute
	// minInspectDelay is for a runtime that did not answer, which is no fault of the image.
	minInspectDelay = time.Second
)

// retryPull is the error of a pull that failed.
func retryPull(image string, err error) error {
	return &plan.ActionError{Reason: plan.ReasonErrImagePull, Err: fmt.Errorf("failed to pull image %q: %w", image, err),
		EventReason: "Failed", Event: fmt.Sprintf("Failed to pull image %q: %v", image, err),
		MinDelay: minRetryDelay, MaxDelay: maxRetryDelay}
}

// retryInvalidName is the error of an image whose name no registry could have. The pod may get another one.
func retryInvalidName(image string, err error) error {
	msg := fmt.Sprintf("Failed to apply default image tag %q: %v", image, err)
	return &plan.ActionError{Reason: "InvalidImageName", Err: errors.New(msg), EventReason: "InspectFailed", Event: msg,
		MinDelay: minRetryDelay, MaxDelay: maxRetryDelay}
}

// retryNeverPulled is the error of an image that is not there and must not be pulled. It may be imported.
func retryNeverPulled(image string) error {
	msg := fmt.Sprintf("Container image %q is not present with pull policy of Never", image)
	return &plan.ActionError{Reason: "ErrImageNeverPull", Err: errors.New(msg), EventReason: "ErrImageNeverPull", Event: msg,
		MinDelay: minRetryDelay, MaxDelay: maxRetryDelay}
}

// retryInspect is the error of a runtime that does not say whether it has the image.
func retryInspect(image string, err error) error {
	return &plan.ActionError{Reason: "ImageInspectError", Err: err,
		EventReason: "Failed", Event: fmt.Sprintf("Failed to inspect image %q: %v", image, err),
		MinDelay: minInspectDelay, MaxDelay: maxRetryDelay}
}
