package plan

import (
	"slices"
	"time"

	"minik8s/internal/slurm/batch"
)

// News is what has become known of a job since its status was written.
type News struct {
	Marks []batch.Mark
	Seen  []batch.Seen // of the job; an array has several
	// Vanished: Slurm no longer has the job in its queue; Seen is what its accounting says, if there is one.
	Vanished bool
	// Heard is when the last mark was heard. What Slurm was asked for before that is older; see Hear and See.
	Heard time.Time
	// Trouble is why the job cannot be followed, if it cannot: the reason and message of a condition. It stays from call to call.
	Trouble *Trouble
	// Tasks are the ended tasks of an array, by number; they stay from one call to the next.
	Tasks map[string]Task
	// Incomplete: which tasks of an array ended before this controller began is not known yet, so nothing is summed up.
	Incomplete bool
}

// Trouble is why a job cannot be followed at the moment.
type Trouble struct{ Reason, Message string }

// Task is one ended task of an array. A task that left word of an end that was not good is COMPLETING until Slurm says how it ended.
type Task struct {
	State    string
	Exit     int32
	Restarts int32
}

// Hear adds a mark that was read at a time. What squeue said before of a job that is not over is no longer so.
func (n *News) Hear(m batch.Mark, now time.Time) {
	if slices.Contains(n.Marks, m) {
		return
	}
	n.Marks = append(n.Marks, m)
	if m.Kind == "run" || m.Kind == "end" {
		n.Heard = now
		if !n.Vanished {
			n.Seen = slices.DeleteFunc(n.Seen, func(s batch.Seen) bool { return !batch.Ended(s.State) })
		}
	}
}

// See notes what squeue says, which was asked at a time.
func (n *News) See(seen []batch.Seen, asked time.Time) {
	if asked.Before(n.Heard) {
		seen = slices.DeleteFunc(seen, func(s batch.Seen) bool { return !batch.Ended(s.State) })
	}
	if len(seen) > 0 {
		n.Seen, n.Vanished = seen, false
	}
}
