package defaults

import "minik8s/internal/api/minik8s"

// Workflow bounds its runs, and how long they are kept.
func Workflow(w *minik8s.Workflow) {
	if w.Spec.MaxSteps == 0 {
		w.Spec.MaxSteps = 1000
	}
	if w.Spec.RunSeconds == 0 {
		w.Spec.RunSeconds = 3600
	}
}
