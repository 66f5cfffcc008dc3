package plan

import (
	"fmt"
	"strings"
	"time"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"minik8s/internal/api/minik8s"
	"minik8s/internal/slurm/batch"
)

// States before Slurm has the job, and words of our own.
const (
	Uploading  = "UPLOADING"
	Compiling  = "COMPILING"
	Submitting = "SUBMITTING"
	pending    = "PENDING"
	running    = "RUNNING"
	completed  = "COMPLETED"
	completing = "COMPLETING"
	failed     = "FAILED"

	// Reasons of FAILED.
	ReasonRefused        = "Refused"                  // sbatch does not take it
	ReasonNeverSatisfied = "DependencyNeverSatisfied" // Slurm's word; of a job that was not submitted for it
	ReasonCompileError   = "CompileError"             // a line of compileScripts failed
	ReasonExitCode       = "NonZeroExitCode"
	ReasonVanished       = "Vanished" // Slurm no longer knows it, and it left no word
)

// ReasonNoSources is why a job is not submitted whose sources have not come.
const ReasonNoSources = "WaitingForSources"

// Reasons of the condition ResultsReady.
const (
	ReasonCollected = "Collected"
	ReasonInPart    = "CollectedInPart" // some files cannot be read
	ReasonDiskFull  = "DiskFull"        // the master has no room for them
)

// Unsatisfied is the kind of a mark that no cluster leaves: what the job depends on ended otherwise than it needs.
const Unsatisfied = "unsatisfied"

// Ended reports whether a status is final.
func Ended(s *minik8s.GpuJobStatus) bool { return batch.Ended(s.State) }

// Doubtful reports whether Slurm has to be asked how the job ended, or a task: it left word of an end that was not good.
func Doubtful(s *minik8s.GpuJobStatus, n *News) bool {
	for _, t := range n.Tasks {
		if t.State == completing {
			return true
		}
	}
	return s.State == completing
}

// Fold writes the news into the status of a job, at a time. n.Tasks must be there for an array.
func Fold(obj *minik8s.GpuJob, n *News, now time.Time) {
	s := &obj.Status
	if Ended(s) {
		return
	}
	if t := n.Trouble; t != nil {
		set(s, minik8s.GpuJobFollowed, false, t.Reason, t.Message, now)
	} else {
		apimeta.RemoveStatusCondition(&s.Conditions, minik8s.GpuJobFollowed)
	}
	for _, kind := range []string{"submitted", "refused", Unsatisfied, "uncompiled", "run", "end"} { // as they happen
		for i := range n.Marks {
			if n.Marks[i].Kind == kind {
				mark(obj, n, &n.Marks[i], now)
			}
		}
	}
	if !Ended(s) && (len(n.Seen) > 0 || n.Vanished) {
		if obj.Spec.Array != "" {
			seenArray(obj, n, now)
		} else {
			seenOne(obj, n, now)
		}
	}
	if !Ended(s) && obj.Spec.Array != "" && !n.Incomplete {
		sumUp(obj, n, now)
	}
}

func mark(obj *minik8s.GpuJob, n *News, m *batch.Mark, now time.Time) {
	s := &obj.Status
	switch m.Kind {
	case "submitted":
		submitted(obj, m.Job, now)
	case "refused":
		set(s, minik8s.GpuJobSubmitted, false, ReasonRefused, m.Text, now)
		end(s, failed, ReasonRefused, "sbatch refused the job: "+m.Text, nil, now)
	case Unsatisfied:
		set(s, minik8s.GpuJobSubmitted, false, ReasonNeverSatisfied, m.Text, now)
		end(s, failed, ReasonNeverSatisfied, m.Text, nil, now)
	case "uncompiled":
		s.ExitCode = new(m.Exit)
		set(s, minik8s.GpuJobCompiled, false, ReasonCompileError, fmt.Sprintf("compiling ended with code %d", m.Exit), now)
		end(s, failed, ReasonCompileError, fmt.Sprintf("compiling ended with code %d: see `minik8sd ctl logs gpujob/%s`", m.Exit, obj.Name), nil, now)
	case "run":
		submitted(obj, m.Job, now)
		if t := n.Tasks[m.Task]; m.Task != "" && t.State == completing && m.Restarts > t.Restarts {
			delete(n.Tasks, m.Task)
		}
		if m.Task == "" && s.StartTime != nil && !m.Start.After(s.StartTime.Time) && s.State != pending {
			return // known
		}
		s.State, s.Reason, s.NodeList = running, "", m.Nodes
		s.Restarts = max(s.Restarts, m.Restarts)
		if s.StartTime == nil || m.Task == "" {
			s.StartTime = stamp(m.Start)
		}
	case "end":
		submitted(obj, m.Job, now)
		switch {
		case m.Task != "":
			t := Task{State: completed, Exit: m.Exit, Restarts: m.Restarts}
			if m.Exit != 0 || m.Signalled {
				t.State = completing
			}
			if was, ok := n.Tasks[m.Task]; !ok || was.State == completing && was.Restarts <= m.Restarts {
				n.Tasks[m.Task] = t
			}
		case m.Restarts < s.Restarts || s.StartTime != nil && m.Start.Before(s.StartTime.Time.Truncate(time.Second)):
			// The end of a try after which there was another.
		default:
			s.NodeList, s.StartTime, s.ExitCode = m.Nodes, stamp(m.Start), new(m.Exit)
			s.EndTime = stamp(m.End)
			if m.Compile {
				set(s, minik8s.GpuJobCompiled, false, ReasonCompileError, "compiling failed in the job", now)
			}
			if m.Exit == 0 && !m.Signalled {
				end(s, completed, "", "", &m.End, now)
			} else {
				s.State = completing
			}
		}
	}
}

// submitted notes that Slurm has the job.
func submitted(obj *minik8s.GpuJob, id string, now time.Time) {
	s := &obj.Status
	if s.JobID != "" {
		return
	}
	s.JobID, s.SubmitTime, s.State, s.Reason = id, stamp(now), pending, ""
	if len(obj.Spec.CompileScripts) > 0 && obj.Spec.CompileOn != minik8s.CompileOnJob {
		set(s, minik8s.GpuJobCompiled, true, "Compiled", "", now)
	}
	set(s, minik8s.GpuJobSubmitted, true, "Submitted", "Slurm's number is "+id, now)
}

func seenOne(obj *minik8s.GpuJob, n *News, now time.Time) {
	s := &obj.Status
	if len(n.Seen) == 0 { // and vanished
		switch {
		case s.ExitCode != nil && *s.ExitCode == 0:
			end(s, completed, "", "", nil, now)
			return
		case s.ExitCode != nil:
			failedBy(obj, failed, "", *s.ExitCode, now)
			return
		}
		end(s, failed, ReasonVanished, "Slurm no longer knows the job, and its accounting does not either", nil, now)
		return
	}
	seen := n.Seen[len(n.Seen)-1]
	if s.JobID == "" {
		submitted(obj, seen.ID, now)
	}
	switch {
	case batch.Ended(seen.State):
		if seen.NodeList != "" {
			s.NodeList = seen.NodeList
		}
		if s.StartTime == nil && !seen.Start.IsZero() && !seen.End.IsZero() && seen.Start.Before(seen.End) {
			s.StartTime = stamp(seen.Start)
		}
		if s.EndTime == nil && !seen.End.IsZero() {
			s.EndTime = stamp(seen.End)
		}
		if seen.State == completed {
			s.ExitCode = new(int32(0))
			end(s, completed, "", "", &seen.End, now)
			return
		}
		exit := seen.Exit
		if s.ExitCode != nil {
			exit = *s.ExitCode
		}
		if seen.Signal != 0 {
			s.Signal = new(seen.Signal)
		}
		failedBy(obj, seen.State, seen.Reason, exit, now)
	case batch.Waits(seen.State):
		if s.State == running || s.State == completing { // queued again
			s.StartTime, s.EndTime, s.ExitCode, s.NodeList = nil, nil, nil, ""
			s.Restarts++
		}
		s.State, s.Reason = seen.State, seen.Reason
	case s.State == completing:
		// Slurm clears up after it; how it ended is said when that is done.
	default:
		s.State, s.Reason, s.NodeList = seen.State, "", seen.NodeList
		if s.StartTime == nil && !seen.Start.IsZero() {
			s.StartTime = stamp(seen.Start)
		}
	}
}

// failedBy ends a job badly, with what Slurm says and the exit code.
func failedBy(obj *minik8s.GpuJob, state, reason string, exit int32, now time.Time) {
	s := &obj.Status
	message := map[string]string{
		"TIMEOUT":       "the job ran into its time limit",
		"OUT_OF_MEMORY": "the job used more memory than it had asked for",
		"CANCELLED":     "the job was cancelled" + ending(" ", reason),
		"NODE_FAIL":     "a node failed under the job",
		"PREEMPTED":     "the job had to make room for another",
		"DEADLINE":      "the job's deadline passed",
		"BOOT_FAIL":     "a node did not start",
	}[state]
	if strings.HasPrefix(reason, "by ") { // sacct's word for the user who did it
		message, reason = "the job was cancelled by user "+strings.TrimPrefix(reason, "by "), ""
	}
	if state == failed || message == "" {
		message = fmt.Sprintf("the job ended with code %d", exit)
		if exit == 0 {
			message = "Slurm says " + state + ending(", ", reason) + "; the job left no word of its exit code"
		}
		if c := apimeta.FindStatusCondition(s.Conditions, minik8s.GpuJobCompiled); c != nil && c.Status == metav1.ConditionFalse {
			message = "compiling failed"
			reason = ReasonCompileError
		}
	}
	if state == failed && (reason == "" || reason == "NonZeroExitCode") {
		reason = ReasonExitCode
	}
	if exit != 0 && s.ExitCode == nil {
		s.ExitCode = new(exit)
	}
	if exit > 128 && exit < 128+65 && s.Signal == nil {
		s.Signal = new(exit - 128)
		message += fmt.Sprintf(" (signal %d)", exit-128)
	}
	end(s, state, reason, message, nil, now)
}

func ending(before, s string) string {
	if s == "" || s == "None" {
		return ""
	}
	return before + s
}

// end ends a job.
func end(s *minik8s.GpuJobStatus, state, reason, message string, at *time.Time, now time.Time) {
	s.State, s.Reason = state, reason
	if s.EndTime == nil {
		if at == nil || at.IsZero() {
			at = &now
		}
		s.EndTime = stamp(*at)
	}
	if state == completed {
		set(s, minik8s.GpuJobComplete, true, "Completed", "", now)
		return
	}
	if reason == "" {
		reason = state
	}
	set(s, minik8s.GpuJobFailed, true, word(reason), message, now)
}

// word makes a condition's reason of what Slurm says: letters, digits and underscores.
func word(reason string) string {
	out := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '_' {
			return r
		}
		return '_'
	}, reason)
	if out == "" || out[0] < 'A' {
		return "Slurm_" + out
	}
	return out
}

// Set sets a condition.
func Set(s *minik8s.GpuJobStatus, kind string, is bool, reason, message string, now time.Time) bool {
	return set(s, kind, is, reason, message, now)
}

func set(s *minik8s.GpuJobStatus, kind string, is bool, reason, message string, now time.Time) bool {
	status := metav1.ConditionFalse
	if is {
		status = metav1.ConditionTrue
	}
	if len(message) > 1024 {
		message = message[:1024]
	}
	return apimeta.SetStatusCondition(&s.Conditions, metav1.Condition{Type: kind, Status: status, Reason: reason, Message: strings.ToValidUTF8(message, "?"),
		LastTransitionTime: metav1.NewTime(now.UTC().Truncate(time.Second))})
}

func stamp(t time.Time) *metav1.Time {
	if t.IsZero() {
		return nil
	}
	return new(metav1.NewTime(t.UTC().Truncate(time.Second)))
}
