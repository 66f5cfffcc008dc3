package plan

import (
	"maps"
	"strings"
	"time"
)

// ActionError is the error of an action. It has the reason for the pod's status and Events, and says when to retry.
type ActionError struct {
	// Reason is shown in the status as the reason why the container waits.
	Reason string
	// Event, if not empty, is recorded as a warning with EventReason.
	EventReason, Event string
	Err                error
	// MinDelay is the delay before the first retry. It doubles with each failure, up to MaxDelay.
	MinDelay, MaxDelay time.Duration
	// WaitsForObject: a retry only helps after an object that the pod uses has changed.
	WaitsForObject bool
}

func (e *ActionError) Error() string { return e.Err.Error() }

// Unwrap lets errors.Is and errors.As see the cause.
func (e *ActionError) Unwrap() error { return e.Err }

// ReasonErrImagePull is the reason of a failed pull. It is shown for PullErrorShownFor; then the status shows
// ImagePullBackOff.
const (
	ReasonErrImagePull = "ErrImagePull"
	PullErrorShownFor  = 2 * time.Second
)

// Failure is a failed action, with the time of its retry.
type Failure struct {
	Reason, Message string
	At, RetryAt     time.Time
	Delay           time.Duration
	// Announced: an Event has reported that the pod waits for the retry.
	Announced bool
	// WaitsForObject: the retry has no set time. It comes when an object that the pod names changes.
	WaitsForObject bool
}

// Fail records that the action of that key failed with e, and when to retry it.
func (s *State) Fail(key string, e *ActionError, now time.Time) *Failure {
	f := s.Failures[key]
	if f == nil {
		f = &Failure{}
		s.Failures[key] = f
	}
	if f.Delay == 0 {
		f.Delay = e.MinDelay
	} else {
		f.Delay = min(2*f.Delay, e.MaxDelay)
	}
	f.Reason, f.Message, f.At, f.RetryAt, f.Announced = e.Reason, e.Err.Error(), now, now.Add(f.Delay), false
	return f
}

// waitsForRetry reports whether the action of that key has failed and must not be retried yet. It also sets the
// worker's wake-up for the retry.
func (p *planner) waitsForRetry(key string) bool {
	f := p.State.Failures[key]
	if f == nil || !f.WaitsForObject && !p.Now.Before(f.RetryAt) {
		return false
	}
	if !f.WaitsForObject {
		p.wakeAt(f.RetryAt)
	}
	return true
}

// RetryImages makes all failed pulls be retried at once.
func (s *State) RetryImages() {
	maps.DeleteFunc(s.Failures, func(key string, _ *Failure) bool {
		return strings.HasPrefix(key, EnsureImage.String()+"/")
	})
}

// ObjectsChanged must be called when an object that the pod uses has changed. Actions that wait for an object are then
// retried, and volumes with content from objects are updated.
func (s *State) ObjectsChanged() {
	maps.DeleteFunc(s.Failures, func(_ string, f *Failure) bool { return f.WaitsForObject })
	s.VolumeChanges++
}
