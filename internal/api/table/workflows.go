package table

import (
	"strconv"
	"strings"
	"time"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"minik8s/internal/api/minik8s"
)

var workflowColumns = []metav1.TableColumnDefinition{
	{Name: "Name", Type: "string", Format: "name", Description: "Name must be unique within a namespace."},
	{Name: "Ready", Type: "string", Description: "Whether all functions exist that it names, or why not."},
	{Name: "Run By Apply", Type: "string", Description: "The run that applying it has started, if its parameters ask for one."},
	{Name: "Age", Type: "string", Description: "The time since the object was created."},
}

func workflowRow(w *minik8s.Workflow, now time.Time) []any {
	ready := "Unknown"
	if c := apimeta.FindStatusCondition(w.Status.Conditions, minik8s.WorkflowReady); c != nil && w.Status.ObservedGeneration == w.Generation {
		ready = string(c.Status)
		if c.Status != metav1.ConditionTrue {
			ready = c.Reason
		}
	}
	return []any{w.Name, ready, or(w.Status.LastRun, none), since(w.CreationTimestamp.Time, now)}
}

var workflowRunColumns = []metav1.TableColumnDefinition{
	{Name: "Name", Type: "string", Format: "name", Description: "Name must be unique within a namespace."},
	{Name: "Workflow", Type: "string", Description: "What is run."},
	{Name: "State", Type: "string", Description: "How far it is."},
	{Name: "Steps", Type: "string", Description: "How many transitions it had, when it has ended."},
	{Name: "Data", Type: "string", Description: "Its result; while it runs, its input."},
	{Name: "Finished", Type: "string", Description: "Whether it has ended: yes or no."},
	{Name: "Took", Type: "string", Description: "From its beginning to its end."},
	{Name: "Age", Type: "string", Description: "The time since the object was created."},
	{Name: "Error", Type: "string", Description: "The error that ended it."},
	{Name: "Cause", Type: "string", Priority: 1, Description: "What is known of the error."},
}

// briefLen is how much of a text a column shows.
const briefLen = 40

func brief(text string) string {
	text, _, more := strings.Cut(text, "\n")
	if runes := []rune(text); len(runes) > briefLen {
		text, more = string(runes[:briefLen]), true
	}
	if more {
		text += "..."
	}
	return text
}

func workflowRunRow(r *minik8s.WorkflowRun, now time.Time) []any {
	s := &r.Status
	took, steps, data, finished := none, none, s.Output, "no"
	if s.StartTime != nil && s.EndTime != nil {
		took = s.EndTime.Sub(s.StartTime.Time).Round(time.Microsecond).String()
	}
	if s.Ended() {
		steps, finished = strconv.FormatInt(s.Steps, 10), "yes"
	} else {
		data = r.FirstInput()
	}
	return []any{r.Name, r.Spec.Workflow, or(s.State, "Pending"), steps, or(brief(string(data.Raw)), none), finished, took, since(r.CreationTimestamp.Time, now), or(s.Error, none), or(brief(s.Cause), none)}
}

var workflowStepColumns = []metav1.TableColumnDefinition{
	{Name: "Name", Type: "string", Format: "name", Description: "The run, the branch if it is in one, and the number of the step in it."},
	{Name: "State", Type: "string", Description: "The state that has been left."},
	{Name: "Event", Type: "string", Description: "How."},
	{Name: "Next", Type: "string", Description: "The state that follows."},
	{Name: "Output", Type: "string", Description: "What the next state gets."},
	{Name: "Took", Type: "string", Description: "From when it was entered to when it was left."},
	{Name: "Error", Type: "string", Description: "Why it has not succeeded."},
	{Name: "Age", Type: "string", Description: "The time since the object was created."},
	{Name: "Instance", Type: "string", Priority: 1, Description: "The pod that gave the result."},
}

func workflowStepRow(s *minik8s.WorkflowStep, now time.Time) []any {
	x := &s.Spec
	return []any{s.Name, x.State, x.Event, or(x.Next, none), or(brief(string(x.Output.Raw)), none), x.Time.Sub(x.Entered.Time).Round(time.Microsecond).String(),
		or(x.Error, none), since(s.CreationTimestamp.Time, now), or(x.Instance, none)}
}
