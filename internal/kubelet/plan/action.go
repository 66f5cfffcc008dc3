package plan

import (
	"strconv"
	"time"
)

// Verb is the kind of an action.
type Verb int

// The actions. Each may be repeated. Actions of one pod run concurrently.
const (
	SetUpVolumes Verb = iota
	MakeSandbox
	EnsureImage
	StartContainer // creates and starts it
	StopContainer
	RemoveContainer
	RemoveSandbox
	TearDown // volumes, cgroup, files
	DeleteObject
)

var verbNames = [...]string{"volumes", "sandbox", "image", "start", "stop", "remove", "removeSandbox",
	"tearDown", "delete"}

// String is the verb's name in keys and logs.
func (v Verb) String() string { return verbNames[v] }

// Action is one thing to do.
type Action struct {
	Verb      Verb
	Container string // name in the spec
	ID        string // of the container in the runtime
	Attempt   int
	Grace     time.Duration
	Why       string // for a stop: the format of its Event; the argument is the container's name
}

// Key identifies the action. Of the actions with the same key, only one is in progress at a time.
func (a Action) Key() string {
	switch a.Verb {
	case EnsureImage, StartContainer:
		return a.Verb.String() + "/" + a.Container
	case StopContainer: // a stop with a shorter grace period may run beside a longer one
		return a.Verb.String() + "/" + a.ID + "/" + strconv.Itoa(int(a.Grace/time.Second))
	case RemoveContainer:
		return a.Verb.String() + "/" + a.ID
	default:
		return a.Verb.String()
	}
}
