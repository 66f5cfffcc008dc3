package minik8s

import (
	"slices"

	"k8s.io/apimachinery/pkg/runtime"
)

// DeepCopyInto copies f to out.
func (f *Function) DeepCopyInto(out *Function) {
	*out = *f
	f.ObjectMeta.DeepCopyInto(&out.ObjectMeta)
	f.Spec.deepCopyInto(&out.Spec)
	f.Status.deepCopyInto(&out.Status)
}

func (s *FunctionSpec) deepCopyInto(out *FunctionSpec) {
	*out = *s
	out.Files = slices.Clone(s.Files)
	for i := range out.Files {
		out.Files[i].Data = slices.Clone(s.Files[i].Data)
	}
	out.Env = slices.Clone(s.Env)
	for i := range out.Env {
		s.Env[i].DeepCopyInto(&out.Env[i])
	}
	s.Resources.DeepCopyInto(&out.Resources)
	out.Triggers = slices.Clone(s.Triggers)
	for i := range out.Triggers {
		if o := s.Triggers[i].Object; o != nil {
			n := *o
			n.Selector, n.On = o.Selector.DeepCopy(), slices.Clone(o.On)
			out.Triggers[i].Object = &n
		}
	}
}

func (s *FunctionStatus) deepCopyInto(out *FunctionStatus) {
	*out = *s
	out.LastCallTime = s.LastCallTime.DeepCopy()
	out.Triggers = slices.Clone(s.Triggers)
	for i := range out.Triggers {
		out.Triggers[i].LastTime = s.Triggers[i].LastTime.DeepCopy()
	}
	out.Conditions = slices.Clone(s.Conditions)
	for i := range out.Conditions {
		s.Conditions[i].DeepCopyInto(&out.Conditions[i])
	}
}

// DeepCopy returns a copy that shares nothing with f.
func (f *Function) DeepCopy() *Function {
	if f == nil {
		return nil
	}
	out := &Function{}
	f.DeepCopyInto(out)
	return out
}

// DeepCopyObject implements runtime.Object.
func (f *Function) DeepCopyObject() runtime.Object {
	if f == nil {
		return nil
	}
	return f.DeepCopy()
}

// DeepCopyObject implements runtime.Object.
func (l *FunctionList) DeepCopyObject() runtime.Object {
	if l == nil {
		return nil
	}
	out := &FunctionList{TypeMeta: l.TypeMeta, Items: slices.Clone(l.Items)}
	l.ListMeta.DeepCopyInto(&out.ListMeta)
	for i := range out.Items {
		l.Items[i].DeepCopyInto(&out.Items[i])
	}
	return out
}

// DeepCopyInto copies c to out.
func (c *FunctionCall) DeepCopyInto(out *FunctionCall) {
	*out = *c
	c.ObjectMeta.DeepCopyInto(&out.ObjectMeta)
	out.Spec.Body = slices.Clone(c.Spec.Body)
	s, o := &c.Status, &out.Status
	o.StartTime, o.EndTime = s.StartTime.DeepCopy(), s.EndTime.DeepCopy()
	o.Queued, o.Result = copied(s.Queued), slices.Clone(s.Result)
}

// DeepCopy returns a copy that shares nothing with c.
func (c *FunctionCall) DeepCopy() *FunctionCall {
	if c == nil {
		return nil
	}
	out := &FunctionCall{}
	c.DeepCopyInto(out)
	return out
}

// DeepCopyObject implements runtime.Object.
func (c *FunctionCall) DeepCopyObject() runtime.Object {
	if c == nil {
		return nil
	}
	return c.DeepCopy()
}

// DeepCopyObject implements runtime.Object.
func (l *FunctionCallList) DeepCopyObject() runtime.Object {
	if l == nil {
		return nil
	}
	out := &FunctionCallList{TypeMeta: l.TypeMeta, Items: slices.Clone(l.Items)}
	l.ListMeta.DeepCopyInto(&out.ListMeta)
	for i := range out.Items {
		l.Items[i].DeepCopyInto(&out.Items[i])
	}
	return out
}
