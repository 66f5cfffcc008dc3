package validation

import (
	"strings"
	"testing"

	"minik8s/internal/api/minik8s"
)

// A step has a place that can be read, and what is kept of an error has bounds, in a step and in a run.
func TestWorkflowStep(t *testing.T) {
	for _, x := range []struct {
		branch, err, cause string
		want               []string
	}{
		{"", "", "", nil},
		{"4-1", "E", "c", nil},
		{"2-0.4-131071.999999-0", strings.Repeat("e", 256), strings.Repeat("c", 32<<10), nil},
		{"4", "", "", []string{"Invalid spec.branch"}},
		{"4-", "", "", []string{"Invalid spec.branch"}},
		{"-1", "", "", []string{"Invalid spec.branch"}},
		{"4-1.", "", "", []string{"Invalid spec.branch"}},
		{"4-1.2", "", "", []string{"Invalid spec.branch"}},
		{"4-1\n", "", "", []string{"Invalid spec.branch"}},
		{"99999999999999999999-1", "", "", []string{"Invalid spec.branch"}},
		{"", strings.Repeat("e", 257), strings.Repeat("c", 32<<10+1), []string{"TooLong spec.error", "TooLong spec.cause"}},
	} {
		expect(t, WorkflowStep(&minik8s.WorkflowStep{Spec: minik8s.WorkflowStepSpec{Run: "r", State: "a", Event: minik8s.StepFailed, Branch: x.branch, Error: x.err, Cause: x.cause}}), x.want...)
	}
}

func TestErrorOfARun(t *testing.T) {
	old := &minik8s.WorkflowRun{Status: minik8s.WorkflowRunStatus{State: minik8s.RunRunning}}
	for _, x := range []struct {
		err, cause string
		want       []string
	}{
		{strings.Repeat("e", 256), strings.Repeat("c", 32<<10), nil},
		{strings.Repeat("e", 257), strings.Repeat("c", 32<<10+1), []string{"TooLong status.error", "TooLong status.cause"}},
	} {
		r := old.DeepCopy()
		r.Status = minik8s.WorkflowRunStatus{State: minik8s.RunFailed, Error: x.err, Cause: x.cause}
		expect(t, WorkflowRunStatusUpdate(r, old), x.want...)
	}
}
