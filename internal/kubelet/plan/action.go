package plan

import (
	"strconv"
	"time"
)

// Verb is what an action does.
type Verb int

// The actions. Each may be repeated; those of one pod run concurrently.
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

// String is the verb in keys and logs.
func (v Verb) String() string { return verbNames[v] }

// Action is one thing to do.
type Action struct {
	Verb      Verb
	Container string // name in the spec
	ID        string // of the container in the runtime
	Attempt   int
	Grace     time.Duration
	Why       string // of a stop: the format of its Event, which gets the container's name
}

// Key names the action: of one key, one action is in progress at a time.
func (a Action) Key() string {
	switch a.Verb {
	case EnsureImage, StartContainer:
		return a.Verb.String() + "/" + a.Container
	case StopContainer: // a stop with a shorter grace may run beside a longer one
		return a.Verb.String() + "/" + a.ID + "/" + strconv.Itoa(int(a.Grace/time.Second))
	case RemoveContainer:
		return a.Verb.String() + "/" + a.ID
	default:
		return a.Verb.String()
	}
}
