package plan_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"minik8s/internal/kubelet/plan"
	"minik8s/internal/kubelet/plan/plantest"
)

func TestRetriesBackOff(t *testing.T) {
	s, now := plan.NewState(), plantest.Noon
	e := &plan.ActionError{Reason: "ErrImagePull", Err: errors.New("no"), MinDelay: 10 * time.Second, MaxDelay: 5 * time.Minute}
	var delays []time.Duration
	for range 7 {
		f := s.Fail("image/web", e, now)
		if f.RetryAt.Sub(now) != f.Delay || !f.At.Equal(now) || f.Reason != "ErrImagePull" || f.Message != "no" {
			t.Errorf("%+v", f)
		}
		delays = append(delays, f.Delay/time.Second)
		now = f.RetryAt
	}
	if want := []time.Duration{10, 20, 40, 80, 160, 300, 300}; !slices.Equal(delays, want) {
		t.Errorf("delays %d, want %d", delays, want)
	}
}

// An image that arrives in another way, and an object that changes, each end only the waits for them.
func TestRetriesEndedByEvents(t *testing.T) {
	keys := func(s *plan.State) int { return len(s.Failures) }
	s := plan.NewState()
	s.Fail("image/web", &plan.ActionError{Err: errors.New("no")}, plantest.Noon)
	s.Fail("start/web", &plan.ActionError{Err: errors.New("no key")}, plantest.Noon).WaitsForObject = true
	s.Fail("sandbox", &plan.ActionError{Err: errors.New("no")}, plantest.Noon)
	s.RetryImages()
	if keys(s) != 2 || s.Failures["image/web"] != nil {
		t.Errorf("after an import: %v", s.Failures)
	}
	s.ObjectsChanged()
	if keys(s) != 1 || s.Failures["sandbox"] == nil || s.VolumeChanges != 1 {
		t.Errorf("after a change: %v", s.Failures)
	}
}
