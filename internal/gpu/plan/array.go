package plan

import (
	"fmt"
	"strings"
	"time"

	"minik8s/internal/api/minik8s"
	"minik8s/internal/slurm/batch"
)

// seenArray notes which tasks have ended, and how.
func seenArray(obj *minik8s.GpuJob, n *News, now time.Time) {
	s := &obj.Status
	for _, t := range n.Seen {
		if s.JobID == "" {
			submitted(obj, t.ID, now)
		}
		old, ok := n.Tasks[t.Task]
		switch {
		case t.Task == "" || strings.ContainsAny(t.Task, "-,%:"): // several
		case batch.Ended(t.State) && (!ok || old.State == completing):
			n.Tasks[t.Task] = Task{State: t.State, Exit: max(t.Exit, old.Exit), Restarts: old.Restarts}
		case batch.Waits(t.State) && old.State == completing: // queued again
			delete(n.Tasks, t.Task)
		}
	}
}

// sumUp writes an array's status from its tasks.
func sumUp(obj *minik8s.GpuJob, n *News, now time.Time) {
	s := &obj.Status
	if s.JobID == "" {
		return
	}
	total, err := batch.Tasks(obj.Spec.Array)
	if err != nil {
		return
	}
	t := minik8s.GpuJobTasks{}
	worst, exit := "", int32(0)
	for id, done := range n.Tasks {
		if done.State == completing {
			if !n.Vanished {
				continue
			}
			if done.State = failed; done.Exit == 0 {
				done.State = completed
			}
			n.Tasks[id] = done
		}
		if done.State == completed {
			t.Succeeded++
			continue
		}
		t.Failed++
		exit = max(exit, done.Exit)
		if worst == "" || worst == failed {
			worst = done.State
		}
	}
	cancelled := ""
	for _, seen := range n.Seen {
		switch {
		case (seen.State == running || seen.State == completing) && !batch.Ended(n.Tasks[seen.Task].State):
			t.Running++
		case batch.Waits(seen.State):
			s.Reason = seen.Reason
		case batch.Ended(seen.State) && strings.ContainsAny(seen.Task, "-,%:"):
			cancelled = seen.State // tasks that never ran, together
		}
	}
	if len(n.Seen) == 0 && s.Tasks != nil {
		t.Running = min(s.Tasks.Running, int32(total)-t.Succeeded-t.Failed)
	}
	if n.Vanished || cancelled != "" && t.Running == 0 {
		if missing := int32(total) - t.Succeeded - t.Failed; missing > 0 {
			t.Failed += missing
			if cancelled == "" {
				cancelled = failed
			}
			worst = cancelled
		}
	}
	t.Running = max(0, min(t.Running, int32(total)-t.Succeeded-t.Failed))
	t.Pending = max(0, int32(total)-t.Succeeded-t.Failed-t.Running)
	s.Tasks = &t
	switch {
	case int(t.Succeeded+t.Failed) >= total:
		s.ExitCode = new(exit)
		if t.Failed == 0 {
			end(s, completed, "", "", nil, now)
			return
		}
		end(s, worst, ReasonExitCode, fmt.Sprintf("%d of %d tasks failed", t.Failed, total), nil, now)
	case t.Running > 0 || t.Succeeded+t.Failed > 0:
		s.State = running
	default:
		s.State = pending
	}
}
