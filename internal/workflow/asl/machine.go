package asl

import (
	"slices"
	"time"
)

// The types of states.
const (
	Task     = "Task"
	Choice   = "Choice"
	Parallel = "Parallel"
	Map      = "Map"
	Wait     = "Wait"
	Pass     = "Pass"
	Succeed  = "Succeed"
	Fail     = "Fail"
)

// Return is the end, as the value of Left and Right.
const Return = "RETURN"

// Bounds of a definition.
const (
	MaxStates    = 1000
	maxDepth     = 10
	maxStateName = 80
	maxItems     = 1000 // of a branch list
)

// Machine is a state machine, or a branch of one.
type Machine struct {
	Comment string
	StartAt string
	// Order has the names of the states: those that come first first.
	Order   []string
	States  map[string]*State
	Timeout time.Duration // 0: none
}

// State is one state. What its type has not is empty.
type State struct {
	Name, Type, Comment string
	Next                string
	End                 bool

	input, output  *path
	result         *place // ResultPath; nil: the result is dropped
	parameters     *template
	resultSelector *template
	Retry          []Retrier
	Catch          []Catcher

	// Function is what a Task calls. Left and Right follow it instead of Next.
	Function    string
	Left, Right string
	timeout     duration
	heartbeat   duration

	Choices []Rule
	Default string

	until     *time.Time
	untilPath *path
	wait      duration

	fixed    any // a Pass state's Result
	hasFixed bool

	err, cause         string
	errPath, causePath expression

	// Branches are those of a Parallel; of a Map the first is what is done with each item.
	Branches    []*Machine
	items       *path
	concurrency duration // a number
	selector    *template
}

// duration is a number of seconds, or where it is found.
type duration struct {
	seconds float64
	path    *path
	given   bool
}

// Retrier says which errors are tried again.
type Retrier struct {
	Errors   []string
	Interval time.Duration
	Most     int
	Rate     float64
	MaxDelay time.Duration // 0: none
	Jitter   bool
}

// Catcher says where it goes on after an error.
type Catcher struct {
	Errors []string
	Next   string
	result *place
}

// Targets are the states that may follow directly, each with what leads there: empty for Next, a rule, an error, a branch.
func (s *State) Targets() []Target {
	var out []Target
	add := func(to, label string, end bool) {
		if to != "" || end {
			out = append(out, Target{To: to, Label: label})
		}
	}
	for _, r := range s.Choices {
		add(r.Next, r.Text(), false)
	}
	if s.Type == Choice {
		add(s.Default, "otherwise", false)
	}
	for _, side := range []struct{ to, label string }{{s.Left, "left"}, {s.Right, "right"}} {
		switch side.to {
		case "":
		case Return:
			add("", side.label, true)
		default:
			add(side.to, side.label, false)
		}
	}
	add(s.Next, "", s.End)
	for _, c := range s.Catch {
		add(c.Next, "error "+join(c.Errors), false)
	}
	return out
}

// MayEnd reports whether its machine may end with it, other than by an error.
func (s *State) MayEnd() bool {
	return s.Type == Succeed || s.Type == Fail || slices.ContainsFunc(s.Targets(), func(t Target) bool { return t.To == "" })
}

// Target is a way out of a state. To is empty at the end.
type Target struct{ To, Label string }

// Walk calls visit with every state of a machine and of those inside it.
func (m *Machine) Walk(visit func(*State)) {
	for _, name := range m.Order {
		s := m.States[name]
		visit(s)
		for _, b := range s.Branches {
			b.Walk(visit)
		}
	}
}

// Functions are the names of all functions that a machine calls, each once, in the order of its states.
func (m *Machine) Functions() []string {
	var out []string
	seen := map[string]bool{}
	m.Walk(func(s *State) {
		if s.Function != "" && !seen[s.Function] {
			seen[s.Function] = true
			out = append(out, s.Function)
		}
	})
	return out
}
