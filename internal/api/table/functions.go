package table

import (
	"time"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"minik8s/internal/api/minik8s"
)

var functionColumns = []metav1.TableColumnDefinition{
	{Name: "Name", Type: "string", Format: "name", Description: "Name must be unique within a namespace."},
	{Name: "Ready", Type: "string", Description: "Whether it can be called, or why not."},
	{Name: "Instances", Type: "integer", Description: "How many instances it has."},
	{Name: "Last Call", Type: "string", Description: "The time since it was last called, about."},
	{Name: "Age", Type: "string", Description: "The time since the object was created."},
	{Name: "Version", Type: "string", Priority: 1, Description: "v1: a process for each call; v2: instances serve many."},
	{Name: "Image", Type: "string", Priority: 1, Description: "What instances run."},
	{Name: "Address", Type: "string", Priority: 1, Description: "The address of its Service, if it has one."},
}

func functionRow(f *minik8s.Function, now time.Time) []any {
	ready := "Unknown"
	if c := apimeta.FindStatusCondition(f.Status.Conditions, minik8s.FunctionReady); c != nil && f.Status.ObservedGeneration == f.Generation {
		ready = string(c.Status)
		if c.Status != metav1.ConditionTrue {
			ready = c.Reason
		}
	}
	last := none
	if t := f.Status.LastCallTime; t != nil {
		last = since(t.Time, now)
	}
	return []any{f.Name, ready, int64(f.Status.Instances), last, since(f.CreationTimestamp.Time, now), f.Spec.Version, or(f.Status.Image, none), or(f.Status.Address, none)}
}

var functionCallColumns = []metav1.TableColumnDefinition{
	{Name: "Name", Type: "string", Format: "name", Description: "The call's id."},
	{Name: "Function", Type: "string", Description: "What was called."},
	{Name: "State", Type: "string", Description: "How far it is."},
	{Name: "Fault", Type: "string", Description: "Of a failed call, whose fault it was."},
	{Name: "Took", Type: "string", Description: "From its beginning to its end."},
	{Name: "Age", Type: "string", Description: "The time since the object was created."},
	{Name: "Instance", Type: "string", Priority: 1, Description: "The pod that gave the result."},
	{Name: "Caller", Type: "string", Priority: 1, Description: "Who called."},
}

func functionCallRow(c *minik8s.FunctionCall, now time.Time) []any {
	s := &c.Status
	took := none
	if s.StartTime != nil && s.EndTime != nil {
		took = s.EndTime.Sub(s.StartTime.Time).String()
	}
	return []any{c.Name, c.Spec.Function, or(s.State, "Pending"), or(s.Fault, none), took, since(c.CreationTimestamp.Time, now), or(s.Instance, none), or(c.Spec.Caller, none)}
}
