package minik8s

import (
	"slices"

	"k8s.io/apimachinery/pkg/runtime"
)

// DeepCopyInto copies w to out.
func (w *Workflow) DeepCopyInto(out *Workflow) {
	*out = *w
	w.ObjectMeta.DeepCopyInto(&out.ObjectMeta)
	out.Spec.Definition, out.Spec.Params = w.Spec.Definition.copied(), w.Spec.Params.copied()
	out.Status.Conditions = slices.Clone(w.Status.Conditions)
	for i := range out.Status.Conditions {
		w.Status.Conditions[i].DeepCopyInto(&out.Status.Conditions[i])
	}
}

// DeepCopy returns a copy that shares nothing with w.
func (w *Workflow) DeepCopy() *Workflow {
	if w == nil {
		return nil
	}
	out := &Workflow{}
	w.DeepCopyInto(out)
	return out
}

// DeepCopyObject implements runtime.Object.
func (w *Workflow) DeepCopyObject() runtime.Object {
	if w == nil {
		return nil
	}
	return w.DeepCopy()
}

// DeepCopyObject implements runtime.Object.
func (l *WorkflowList) DeepCopyObject() runtime.Object {
	if l == nil {
		return nil
	}
	out := &WorkflowList{TypeMeta: l.TypeMeta, Items: slices.Clone(l.Items)}
	l.ListMeta.DeepCopyInto(&out.ListMeta)
	for i := range out.Items {
		l.Items[i].DeepCopyInto(&out.Items[i])
	}
	return out
}

// DeepCopyInto copies r to out.
func (r *WorkflowRun) DeepCopyInto(out *WorkflowRun) {
	*out = *r
	r.ObjectMeta.DeepCopyInto(&out.ObjectMeta)
	out.Spec.Input = r.Spec.Input.copied()
	s, o := &r.Status, &out.Status
	o.Definition, o.Output = s.Definition.copied(), s.Output.copied()
	o.StartTime, o.EndTime = s.StartTime.DeepCopy(), s.EndTime.DeepCopy()
}

// DeepCopy returns a copy that shares nothing with r.
func (r *WorkflowRun) DeepCopy() *WorkflowRun {
	if r == nil {
		return nil
	}
	out := &WorkflowRun{}
	r.DeepCopyInto(out)
	return out
}

// DeepCopyObject implements runtime.Object.
func (r *WorkflowRun) DeepCopyObject() runtime.Object {
	if r == nil {
		return nil
	}
	return r.DeepCopy()
}

// DeepCopyObject implements runtime.Object.
func (l *WorkflowRunList) DeepCopyObject() runtime.Object {
	if l == nil {
		return nil
	}
	out := &WorkflowRunList{TypeMeta: l.TypeMeta, Items: slices.Clone(l.Items)}
	l.ListMeta.DeepCopyInto(&out.ListMeta)
	for i := range out.Items {
		l.Items[i].DeepCopyInto(&out.Items[i])
	}
	return out
}

// DeepCopyInto copies s to out.
func (s *WorkflowStep) DeepCopyInto(out *WorkflowStep) {
	*out = *s
	s.ObjectMeta.DeepCopyInto(&out.ObjectMeta)
	out.Spec.Output, out.Spec.Until = s.Spec.Output.copied(), s.Spec.Until.DeepCopy()
	s.Spec.Entered.DeepCopyInto(&out.Spec.Entered)
	s.Spec.Time.DeepCopyInto(&out.Spec.Time)
}

// DeepCopy returns a copy that shares nothing with s.
func (s *WorkflowStep) DeepCopy() *WorkflowStep {
	if s == nil {
		return nil
	}
	out := &WorkflowStep{}
	s.DeepCopyInto(out)
	return out
}

// DeepCopyObject implements runtime.Object.
func (s *WorkflowStep) DeepCopyObject() runtime.Object {
	if s == nil {
		return nil
	}
	return s.DeepCopy()
}

// DeepCopyObject implements runtime.Object.
func (l *WorkflowStepList) DeepCopyObject() runtime.Object {
	if l == nil {
		return nil
	}
	out := &WorkflowStepList{TypeMeta: l.TypeMeta, Items: slices.Clone(l.Items)}
	l.ListMeta.DeepCopyInto(&out.ListMeta)
	for i := range out.Items {
		l.Items[i].DeepCopyInto(&out.Items[i])
	}
	return out
}
