package asl

import (
	"hash/fnv"
	"math"
	"math/rand/v2"
	"slices"
	"time"
)

// The names of errors that the language knows.
const (
	ErrAll              = "States.ALL"
	ErrBranchFailed     = "States.BranchFailed"
	ErrDataLimit        = "States.DataLimitExceeded"
	ErrToleratedFailure = "States.ExceedToleratedFailureThreshold"
	ErrHeartbeat        = "States.HeartbeatTimeout"
	ErrIntrinsic        = "States.IntrinsicFailure"
	ErrItemReader       = "States.ItemReaderFailed"
	ErrNoChoice         = "States.NoChoiceMatched"
	ErrParameterPath    = "States.ParameterPathFailure"
	ErrPermissions      = "States.Permissions"
	ErrResultPath       = "States.ResultPathMatchFailure"
	ErrResultWriter     = "States.ResultWriterFailed"
	ErrRuntime          = "States.Runtime"
	ErrTaskFailed       = "States.TaskFailed"
	ErrTimeout          = "States.Timeout"
)

// Errors are those names.
var Errors = []string{ErrAll, ErrBranchFailed, ErrDataLimit, ErrToleratedFailure, ErrHeartbeat, ErrIntrinsic, ErrItemReader, ErrNoChoice,
	ErrParameterPath, ErrPermissions, ErrResultPath, ErrResultWriter, ErrRuntime, ErrTaskFailed, ErrTimeout}

// Error is why a state failed.
type Error struct {
	Name, Cause string
	// Branch: it ended a machine inside the state.
	Branch bool
}

// handles reports whether names of a Retry or a Catch mean an error. Nothing handles States.Runtime, also not by its name, as at AWS.
func handles(names []string, e *Error) bool {
	if e.Name == ErrRuntime {
		return false
	}
	return slices.ContainsFunc(names, func(name string) bool {
		switch name {
		case ErrAll:
			return e.Name != ErrDataLimit
		case ErrTaskFailed:
			return e.Name != ErrTimeout && e.Name != ErrDataLimit
		case ErrTimeout:
			return e.Name == ErrTimeout || e.Name == ErrHeartbeat
		case ErrBranchFailed:
			return e.Branch
		}
		return name == e.Name
	})
}

// Input is what a state works with: InputPath and Parameters of its input. Of a Map the parameters are for each item.
func (s *State) Input(input any, c *Context) (any, *Error) {
	v, err := s.input.find(input, c, ErrRuntime, "InputPath")
	if err != nil || s.parameters == nil {
		return v, err
	}
	return s.parameters.fill(v, c)
}

// Output is what a state passes on: its result through ResultSelector, ResultPath and OutputPath. input is what came into the state.
func (s *State) Output(input, result any, c *Context) (any, *Error) {
	if s.resultSelector != nil {
		var err *Error
		if result, err = s.resultSelector.fill(result, c); err != nil {
			return nil, err
		}
	}
	out := input
	if s.result != nil {
		var err error
		if out, err = s.result.put(input, result); err != nil {
			return nil, errorf(ErrResultPath, "ResultPath %s: %v", s.result.text, err)
		}
	}
	return s.filter(out, c)
}

func (s *State) filter(v any, c *Context) (any, *Error) {
	return s.output.find(v, c, ErrRuntime, "OutputPath")
}

// PassOn is what states without a result pass on (Choice, Wait, Succeed): what InputPath and OutputPath leave.
func (s *State) PassOn(effective any, c *Context) (any, *Error) { return s.filter(effective, c) }

// PassResult is a Pass state's result.
func (s *State) PassResult(effective any) any {
	if s.hasFixed {
		return s.fixed
	}
	return effective
}

// Choose is the state that follows a Choice.
func (s *State) Choose(effective any, c *Context) (string, *Error) {
	for i := range s.Choices {
		ok, err := s.Choices[i].holds(effective, c)
		if err != nil {
			return "", err
		}
		if ok {
			return s.Choices[i].Next, nil
		}
	}
	if s.Default == "" {
		return "", errorf(ErrNoChoice, "no rule of %s is true, and it has no Default", s.Name)
	}
	return s.Default, nil
}

// Until is the end of a Wait that was entered at a time.
func (s *State) Until(entered time.Time, effective any, c *Context) (time.Time, *Error) {
	switch {
	case s.until != nil:
		return *s.until, nil
	case s.untilPath != nil:
		v, err := s.untilPath.find(effective, c, ErrRuntime, "TimestampPath")
		if err != nil {
			return time.Time{}, err
		}
		t, ok := timestamp(v)
		if !ok {
			return t, errorf(ErrRuntime, "TimestampPath %s names no time, as 2026-01-02T15:04:05Z", s.untilPath.text)
		}
		return t, nil
	}
	n, _, err := s.wait.of(effective, c)
	return entered.Add(n), err
}

// of is a duration for an input; false: there is none.
func (d duration) of(effective any, c *Context) (time.Duration, bool, *Error) {
	if d.path == nil {
		return d.fixed(), d.given, nil
	}
	v, err := d.path.find(effective, c, ErrRuntime, "the path")
	if err != nil {
		return 0, false, err
	}
	n, ok := number(v)
	if !ok || n < 0 || n > longest {
		return 0, false, errorf(ErrRuntime, "the path %s names no number from 0 to %d", d.path.text, longest)
	}
	return time.Duration(n * float64(time.Second)), true, nil
}

// Limit is how long a Task may take, and the error when it takes longer; 0: as long as its function may.
func (s *State) Limit(effective any, c *Context) (time.Duration, *Error, *Error) {
	limit, given, err := s.timeout.of(effective, c)
	if err != nil {
		return 0, nil, err
	}
	beat, also, err := s.heartbeat.of(effective, c)
	if err != nil {
		return 0, nil, err
	}
	if also && (!given || beat < limit) {
		return beat, errorf(ErrHeartbeat, "the function was silent for %v: it sends no heartbeats, so it has to answer within HeartbeatSeconds", beat), nil
	}
	return limit, errorf(ErrTimeout, "the function did not answer within the %v of TimeoutSeconds", limit), nil
}

// Failure is the error of a Fail state.
func (s *State) Failure(input any, c *Context) *Error {
	out := &Error{Name: s.err, Cause: s.cause}
	for _, x := range []struct {
		from expression
		to   *string
	}{{s.errPath, &out.Name}, {s.causePath, &out.Cause}} {
		if x.from == nil {
			continue
		}
		v, err := x.from.eval(input, c)
		if err != nil && err.Name == ErrParameterPath { // it is none of Parameters
			return &Error{Name: ErrRuntime, Cause: err.Cause}
		}
		if err != nil {
			return err
		}
		*x.to = text(v)
	}
	return out
}

// Items are the inputs of a Map's machines. raw are the items as they came, for the context object.
func (s *State) Items(effective any, c *Context) (raw []any, _ *Error) {
	v, err := s.items.find(effective, c, ErrRuntime, "ItemsPath")
	if err != nil {
		return nil, err
	}
	list, ok := v.([]any)
	if !ok {
		at := "$"
		if s.items != nil {
			at = s.items.text
		}
		return nil, errorf(ErrRuntime, "ItemsPath %s names no list in the input", at)
	}
	return list, nil
}

// Item is the input of the machine for one item; c is that item's.
func (s *State) Item(effective, item any, c *Context) (any, *Error) {
	if s.selector == nil {
		return item, nil
	}
	return s.selector.fill(effective, c)
}

// Concurrency is how many items of a Map are worked on at a time; 0: all.
func (s *State) Concurrency(effective any, c *Context) (int, *Error) {
	d, _, err := s.concurrency.of(effective, c)
	return int(math.Min(d.Seconds(), longest)), err
}

// Handling is what is done about an error.
type Handling struct {
	// Again: the state is tried again after Delay, by this entry of Retry.
	Again   bool
	Retrier int
	Delay   time.Duration
	// Caught: it goes on with Next and Output.
	Caught bool
	Next   string
	Output any
}

// Handle is what a state does about an error. tried is how often each entry of Retry has been used. key makes what is random.
func (s *State) Handle(e *Error, input any, tried map[int]int, key string) (Handling, *Error) {
	for i, r := range s.Retry {
		if !handles(r.Errors, e) {
			continue
		}
		if tried[i] >= r.Most {
			break // as the specification says: the first that fits counts
		}
		delay := float64(r.Interval) * math.Pow(r.Rate, float64(tried[i]))
		if r.MaxDelay > 0 {
			delay = min(delay, float64(r.MaxDelay))
		}
		if r.Jitter {
			delay *= seeded(key).Float64()
		}
		return Handling{Again: true, Retrier: i, Delay: time.Duration(min(delay, longest*float64(time.Second)))}, nil
	}
	for _, c := range s.Catch {
		if !handles(c.Errors, e) {
			continue
		}
		out := input
		if c.result != nil {
			var err error
			if out, err = c.result.put(input, map[string]any{"Error": e.Name, "Cause": e.Cause}); err != nil {
				return Handling{}, errorf(ErrResultPath, "ResultPath %s of a catcher: %v", c.result.text, err)
			}
		}
		return Handling{Caught: true, Next: c.Next, Output: out}, nil
	}
	return Handling{}, e
}

// Following is the state after one that has ended well; branch is what the function said of it. "" is the end.
func (s *State) Following(branch string) string {
	next := s.Next
	switch {
	case s.Left == "" && s.Right == "":
	case branch == "left":
		next = s.Left
	default:
		next = s.Right
	}
	if next == Return {
		return ""
	}
	return next
}

// seeded is random by a key.
func seeded(key string) *rand.Rand {
	h := fnv.New128a()
	h.Write([]byte(key)) //nolint:errcheck // it never fails
	sum := h.Sum(nil)
	var a, b uint64
	for i := range 8 {
		a, b = a<<8|uint64(sum[i]), b<<8|uint64(sum[8+i])
	}
	return rand.New(rand.NewPCG(a, b))
}
