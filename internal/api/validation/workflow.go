package validation

import (
	"fmt"
	"regexp"
	"strings"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"minik8s/internal/api/minik8s"
	"minik8s/internal/workflow/asl"
)

const (
	maxWorkflowName = 63
	maxRunName      = 100 // a workflow's, and what tells its runs apart
	maxStepName     = 253
	// maxWorkflowBytes is what a definition, an input or an output may have.
	maxWorkflowBytes = 256 << 10
	maxWorkflowSteps = 1_000_000
)

// workflowName is the rule for names of workflows, which are as those of functions.
func workflowName(most int) apivalidation.ValidateNameFunc {
	return func(name string, prefix bool) []string {
		var out []string
		if prefix {
			name = strings.TrimRight(name, "-._") // more follows
		}
		if !functionNames.MatchString(name) {
			out = append(out, "it has letters, digits, '-', '_' and '.', and begins and ends with a letter or a digit (as in 'print')")
		}
		if len(name) > most {
			out = append(out, fmt.Sprintf("must be no more than %d characters", most))
		}
		return out
	}
}

// Workflow checks a Workflow. The functions that it names need not exist.
func Workflow(w *minik8s.Workflow) field.ErrorList {
	s, at := &w.Spec, spec.Child("definition")
	var errs field.ErrorList
	if s.Definition.IsZero() {
		errs = append(errs, field.Required(at, "a state machine: an object with StartAt and States"))
	} else if errs = small(at, s.Definition); len(errs) == 0 {
		m, mistakes := asl.Parse(s.Definition.Raw, at)
		errs = append(errs, mistakes...)
		if m != nil && len(mistakes) == 0 {
			errs = append(errs, tasks(m, at)...)
		}
	}
	errs = append(errs, small(spec.Child("params"), s.Params)...)
	within := func(name string, n, most int64) {
		if n < 1 || n > most {
			errs = append(errs, field.Invalid(spec.Child(name), n, fmt.Sprintf("must be from 1 to %d", most)))
		}
	}
	within("maxSteps", s.MaxSteps, maxWorkflowSteps)
	within("runSeconds", s.RunSeconds, 30*24*3600)
	return errs
}

// tasks checks that what is called can be a function.
func tasks(m *asl.Machine, at *field.Path) (errs field.ErrorList) {
	m.Walk(func(s *asl.State) {
		if s.Function != "" {
			errs = append(errs, say(at.Child("States").Key(s.Name).Child("Resource"), s.Function, functionName(s.Function, false))...)
		}
	})
	return errs
}

func small(at *field.Path, j minik8s.JSON) field.ErrorList {
	if len(j.Raw) > maxWorkflowBytes {
		return field.ErrorList{field.TooLong(at, "", maxWorkflowBytes)}
	}
	return nil
}

// WorkflowStatusUpdate checks a status.
func WorkflowStatusUpdate(w, _ *minik8s.Workflow) field.ErrorList {
	return metav1validation.ValidateConditions(w.Status.Conditions, field.NewPath("status", "conditions"))
}

// WorkflowRun checks a run. Its workflow need not exist: then the run fails.
func WorkflowRun(r *minik8s.WorkflowRun) field.ErrorList {
	if r.Spec.Workflow == "" {
		return field.ErrorList{field.Required(spec.Child("workflow"), "the name of a Workflow of the namespace")}
	}
	errs := say(spec.Child("workflow"), r.Spec.Workflow, workflowName(maxWorkflowName)(r.Spec.Workflow, false))
	return append(errs, small(spec.Child("input"), r.Spec.Input)...)
}

// WorkflowRunUpdate checks a run that replaces old.
func WorkflowRunUpdate(r, old *minik8s.WorkflowRun) field.ErrorList {
	next := old.Spec
	next.Cancel = r.Spec.Cancel
	switch {
	case !apiequality.Semantic.DeepEqual(r.Spec, next):
		return field.ErrorList{field.Forbidden(spec, "a run cannot be changed, but for cancel: make another one")}
	case old.Spec.Cancel && !r.Spec.Cancel:
		return field.ErrorList{field.Forbidden(spec.Child("cancel"), "what has been cancelled stays so")}
	}
	return nil
}

// WorkflowRunStatusUpdate checks a status. What has ended stays as it is, and so does what a run has begun with.
func WorkflowRunStatusUpdate(r, old *minik8s.WorkflowRun) field.ErrorList {
	s, was, at := &r.Status, &old.Status, field.NewPath("status")
	switch {
	case apiequality.Semantic.DeepEqual(s, was):
		return nil
	case was.Ended():
		return field.ErrorList{field.Forbidden(at, "the run has ended")}
	case was.State != "" && !apiequality.Semantic.DeepEqual(s.Definition, was.Definition):
		return field.ErrorList{field.Forbidden(at.Child("definition"), "a run keeps what it has begun with")}
	case was.State != "" && !apiequality.Semantic.DeepEqual(s.Input, was.Input):
		return field.ErrorList{field.Forbidden(at.Child("input"), "a run keeps what it has begun with")}
	}
	errs := shortError(at, s.Error, s.Cause)
	return append(errs, oneOf(at.Child("state"), s.State, minik8s.RunRunning, minik8s.RunSucceeded, minik8s.RunFailed, minik8s.RunTimedOut, minik8s.RunCancelled)...)
}

// shortError checks that the name of an error and its cause have no more than the workflow controller keeps of them.
func shortError(at *field.Path, name, cause string) (errs field.ErrorList) {
	if len(name) > minik8s.MaxErrorName {
		errs = append(errs, field.TooLong(at.Child("error"), "", minik8s.MaxErrorName))
	}
	if len(cause) > minik8s.MaxErrorCause {
		errs = append(errs, field.TooLong(at.Child("cause"), "", minik8s.MaxErrorCause))
	}
	return errs
}

// branchNames are the names of branches: for each state around them the number of its step, and their own number in it.
var branchNames = regexp.MustCompile(`^[0-9]{1,9}-[0-9]{1,9}(\.[0-9]{1,9}-[0-9]{1,9})*$`)

// WorkflowStep checks a step.
func WorkflowStep(s *minik8s.WorkflowStep) field.ErrorList {
	var errs field.ErrorList
	for name, value := range map[string]string{"run": s.Spec.Run, "state": s.Spec.State} {
		if value == "" {
			errs = append(errs, field.Required(spec.Child(name), ""))
		}
	}
	if s.Spec.Number < 0 {
		errs = append(errs, field.Invalid(spec.Child("number"), s.Spec.Number, "must not be negative"))
	}
	if b := s.Spec.Branch; b != "" && !branchNames.MatchString(b) {
		errs = append(errs, field.Invalid(spec.Child("branch"), b, "must be empty, or as 4-1 or 2-0.4-1: the number of a step, and that of a branch of its state"))
	}
	errs = append(errs, shortError(spec, s.Spec.Error, s.Spec.Cause)...)
	return append(errs, oneOf(spec.Child("event"), s.Spec.Event, minik8s.StepSucceeded, minik8s.StepRetried, minik8s.StepCaught, minik8s.StepFailed)...)
}

// WorkflowStepUpdate refuses changes.
func WorkflowStepUpdate(s, old *minik8s.WorkflowStep) field.ErrorList {
	if !apiequality.Semantic.DeepEqual(s.Spec, old.Spec) {
		return field.ErrorList{field.Forbidden(spec, "what has happened cannot be changed")}
	}
	return nil
}
