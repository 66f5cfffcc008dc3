package strategy

import (
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"minik8s/internal/api"
	"minik8s/internal/api/defaults"
	"minik8s/internal/api/dialect"
	"minik8s/internal/api/minik8s"
	"minik8s/internal/api/validation"
	"minik8s/internal/registry"
	"minik8s/internal/workflow/asl"
)

func workflowStrategy() *registry.Strategy {
	changed := specChanged(func(w *minik8s.Workflow) any { return w.Spec })
	return &registry.Strategy{
		Default:        onOne(defaults.Workflow),
		Validate:       checkOne(validation.Workflow),
		ValidateStatus: checkStep(validation.WorkflowStatusUpdate),
		Warnings: func(obj api.Object, others registry.Lister) []string {
			return missingFunctions(obj.(*minik8s.Workflow), others)
		},
		CopyStatus:  onStep(func(dst, src *minik8s.Workflow) { dst.Status = src.Status }),
		SpecChanged: changed,
		Dialect:     dialect.For(api.Workflows),
		Needs:       callsFunctions("spec.definition", changed),
	}
}

// missingFunctions warns of functions that a workflow names and that do not exist. They may come later: the order of manifests in a
// file is no mistake.
func missingFunctions(w *minik8s.Workflow, others registry.Lister) []string {
	at := field.NewPath("spec", "definition")
	m, errs := asl.Parse(w.Spec.Definition.Raw, at)
	if len(errs) > 0 {
		return nil
	}
	var out []string
	m.Walk(func(s *asl.State) {
		if s.Function != "" && others.Get(api.Functions, w.Namespace, s.Function) == nil {
			out = append(out, fmt.Sprintf("%s: there is no function %s/%s yet: until there is, the state fails", at.Child("States").Key(s.Name).Child("Resource"), w.Namespace, s.Function))
		}
	})
	return out
}

func workflowRunStrategy() *registry.Strategy {
	return &registry.Strategy{
		Needs:          callsFunctions("spec.workflow", nil),
		Validate:       checkOne(validation.WorkflowRun),
		ValidateUpdate: checkStep(validation.WorkflowRunUpdate),
		ValidateStatus: checkStep(validation.WorkflowRunStatusUpdate),
		CopyStatus:     onStep(func(dst, src *minik8s.WorkflowRun) { dst.Status = src.Status }),
		Admit: func(obj api.Object, others registry.Lister) error {
			belong(obj.(*minik8s.WorkflowRun), others)
			return nil
		},
		SpecChanged: specChanged(func(r *minik8s.WorkflowRun) any { return r.Spec }),
		Fields: selectable(map[string]func(*minik8s.WorkflowRun) string{
			"spec.workflow": func(r *minik8s.WorkflowRun) string { return r.Spec.Workflow },
			"status.state":  func(r *minik8s.WorkflowRun) string { return r.Status.State },
		}),
	}
}

// belong makes a run one of its workflow, with which it goes.
func belong(r *minik8s.WorkflowRun, others registry.Lister) {
	w, ok := others.Get(api.Workflows, r.Namespace, r.Spec.Workflow).(*minik8s.Workflow)
	if !ok || slices.ContainsFunc(r.OwnerReferences, func(o metav1.OwnerReference) bool { return o.UID == w.UID }) {
		return
	}
	r.OwnerReferences = append(r.OwnerReferences, metav1.OwnerReference{APIVersion: api.Workflows.APIVersion(), Kind: api.Workflows.Kind, Name: w.Name, UID: w.UID})
}

func workflowStepStrategy() *registry.Strategy {
	return &registry.Strategy{
		Validate:       checkOne(validation.WorkflowStep),
		ValidateUpdate: checkStep(validation.WorkflowStepUpdate),
		Fields: selectable(map[string]func(*minik8s.WorkflowStep) string{
			"spec.run": func(s *minik8s.WorkflowStep) string { return s.Spec.Run },
		}),
	}
}
