package batch

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Seen is a job, or one task of an array, as squeue or sacct shows it.
type Seen struct {
	ID    string // the number of the job; of an array, that of the whole
	Task  string // of an array: a number, or several that wait together, as in "4-9%2"
	Name  string
	State string // Slurm's word, in capitals
	// Reason is why it waits, or how it ended.
	Reason   string
	NodeList string
	Start    time.Time // zero: not yet
	End      time.Time
	// Exit and Signal are known to sacct alone.
	Exit, Signal int32
}

// QueueFormat is the format with which squeue is asked.
const QueueFormat = "%F|%K|%T|%r|%N|%S|%e|%j"

// ParseQueue reads what squeue printed with QueueFormat.
func ParseQueue(out string) ([]Seen, error) {
	var seen []Seen
	for line := range strings.Lines(out) {
		line = strings.TrimRight(line, "\n")
		if line == "" {
			continue
		}
		f := strings.Split(line, "|")
		if len(f) < 8 {
			return nil, fmt.Errorf("squeue printed %q: expected 8 fields", line)
		}
		s := Seen{ID: f[0], Task: none(f[1]), State: f[2], Reason: none(f[3]), NodeList: none(f[4]), Start: stamp(f[5]), End: stamp(f[6]), Name: strings.Join(f[7:], "|")}
		seen = append(seen, s)
	}
	return seen, nil
}

// AccountFormat are the fields that sacct is asked for, with --parsable2.
const AccountFormat = "JobID,JobName,State,ExitCode,NodeList,Start,End"

// ParseAccount reads what sacct printed with AccountFormat, --parsable2 and --noheader.
func ParseAccount(out string) ([]Seen, error) {
	var seen []Seen
	for line := range strings.Lines(out) {
		line = strings.TrimRight(line, "\n")
		if line == "" {
			continue
		}
		f := strings.Split(line, "|")
		if len(f) != 7 {
			return nil, fmt.Errorf("sacct printed %q: expected 7 fields", line)
		}
		s := Seen{Name: f[1], NodeList: none(f[4]), Start: stamp(f[5]), End: stamp(f[6])}
		s.ID, s.Task, _ = strings.Cut(f[0], "_")
		s.Task = strings.Trim(s.Task, "[]")
		s.State, s.Reason, _ = strings.Cut(f[2], " ") // "CANCELLED by 1000"
		s.State = strings.TrimRight(s.State, "+")
		code, signal, _ := strings.Cut(f[3], ":")
		n, _ := strconv.ParseInt(code, 10, 32)
		sig, _ := strconv.ParseInt(signal, 10, 32)
		s.Exit, s.Signal = int32(n), int32(sig)
		seen = append(seen, s)
	}
	return seen, nil
}

// none is the empty string for Slurm's words for nothing.
func none(s string) string {
	switch s {
	case "N/A", "None", "(null)", "None assigned", "Unknown":
		return ""
	}
	return s
}

// Environment comes before squeue and sacct, so that times are in UTC and in the format that is read here.
const Environment = "TZ=UTC SLURM_TIME_FORMAT=standard "

func stamp(s string) time.Time {
	t, err := time.Parse("2006-01-02T15:04:05", s)
	if err != nil {
		return time.Time{}
	}
	return t
}

// Ended reports whether a state is final. Slurm's man pages list them under JOB STATE CODES.
func Ended(state string) bool {
	switch state {
	case "COMPLETED", "FAILED", "CANCELLED", "TIMEOUT", "NODE_FAIL", "OUT_OF_MEMORY", "BOOT_FAIL", "DEADLINE", "PREEMPTED", "REVOKED":
		return true
	}
	return false
}

// Waits reports whether a job in a state that is not final has no nodes.
func Waits(state string) bool {
	switch state {
	case "PENDING", "REQUEUED", "REQUEUE_HOLD", "REQUEUE_FED", "RESV_DEL_HOLD", "SPECIAL_EXIT", "CONFIGURING":
		return true
	}
	return false
}

// Mark is word that a job has left.
type Mark struct {
	UID  string
	Task string // of an array
	Kind string // submitted, run, end, refused, uncompiled
	Text string // refused: what sbatch said

	Job        string
	Nodes      string
	Restarts   int32
	Exit       int32
	Compile    bool // the compile script failed, in the job
	Signalled  bool // Slurm told the job to end, so its exit code does not say how it ended
	Start, End time.Time
}

// ParseMarkName reads the name of a mark's file: UID.KIND or UID.TASK.KIND. Names that are being written are none.
func ParseMarkName(name string) (uid, task, kind string, ok bool) {
	parts := strings.Split(name, ".")
	switch len(parts) {
	case 2:
		uid, kind = parts[0], parts[1]
	case 3:
		uid, task, kind = parts[0], parts[1], parts[2]
	default:
		return "", "", "", false
	}
	switch kind {
	case "submitted", "run", "end", "refused", "uncompiled":
		return uid, task, kind, len(uid) == 36
	}
	return "", "", "", false
}

// ParseMark reads a mark: words NAME=VALUE, or a refusal's text.
func ParseMark(uid, task, kind, text string) Mark {
	m := Mark{UID: uid, Task: task, Kind: kind, Text: strings.TrimSpace(text)}
	if kind == "refused" {
		return m
	}
	for _, word := range strings.Fields(text) {
		name, value, _ := strings.Cut(word, "=")
		n, _ := strconv.ParseInt(value, 10, 64)
		switch name {
		case "job":
			m.Job = value
		case "nodes":
			m.Nodes = value
		case "restarts":
			m.Restarts = int32(n)
		case "exit":
			m.Exit = int32(n)
		case "failed":
			m.Compile = value == "compile"
		case "signalled":
			m.Signalled = value != ""
		case "start":
			m.Start = time.Unix(n, 0)
		case "end":
			m.End = time.Unix(n, 0)
		}
	}
	return m
}

// Tasks is how many tasks an array has: "0-9", "1,3,5", "0-10:2", "0-99%4". It fails for what is no array.
func Tasks(array string) (int, error) {
	list, limit, limited := strings.Cut(array, "%")
	if limited {
		if n, err := strconv.Atoi(limit); err != nil || n < 1 {
			return 0, fmt.Errorf("%q: after %% comes how many tasks run at a time", array)
		}
	}
	ids := map[int]bool{}
	for _, part := range strings.Split(list, ",") {
		span, step := part, "1"
		if a, b, ok := strings.Cut(part, ":"); ok {
			span, step = a, b
		}
		first, last, isSpan := strings.Cut(span, "-")
		if !isSpan {
			last = first
		}
		lo, err1 := strconv.Atoi(first)
		hi, err2 := strconv.Atoi(last)
		by, err3 := strconv.Atoi(step)
		if err1 != nil || err2 != nil || err3 != nil || lo < 0 || hi < lo || by < 1 || hi > 4_000_000 || !isSpan && step != "1" {
			return 0, fmt.Errorf(`%q: expected numbers and ranges, as in "0-9", "1,3,5", "0-10:2" or "0-99%%4"`, array)
		}
		for i := lo; i <= hi; i += by {
			ids[i] = true
			if len(ids) > 100_000 {
				return 0, fmt.Errorf("%q: an array has at most 100000 tasks", array)
			}
		}
	}
	return len(ids), nil
}
