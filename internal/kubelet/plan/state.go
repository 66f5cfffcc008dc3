package plan

import "time"

// State is what a worker remembers of its pod between two decisions and can read back neither from the API
// nor from the runtime. It may be lost: decisions are then repeated, never wrong.
type State struct {
	// Admitted: the pod may run here. Rejected is why it may not, which makes it fail.
	Admitted bool
	Rejected *Rejection
	// InProgress are the actions being carried out, and Failures those that failed, until they succeed; both
	// by the action's key.
	InProgress map[string]Running
	Failures   map[string]*Failure
	// VolumesReady: this process has set the volumes up.
	VolumesReady bool
	// VolumeChanges counts changes of objects that volumes follow; VolumesApplied is up to which of them the
	// volumes are up to date.
	VolumeChanges, VolumesApplied int
	// TokenRenewal is when a token in a volume is to be renewed; zero: there is none.
	TokenRenewal time.Time
	// TornDown: volumes and cgroup are removed. LogsRemoved: the logs too, which a finished pod keeps.
	TornDown, LogsRemoved bool
	// ObjectDeleted: the API's object is deleted.
	ObjectDeleted bool
	// DeletionSeen is when the kubelet first saw that the pod is being deleted.
	DeletionSeen time.Time
	// EndTimes is when exited containers ended, by id, by this process's monotonic clock.
	EndTimes map[string]time.Time
	// Containers is by the container's name in the spec; the maps below are by the id of one attempt.
	Containers          map[string]*ContainerState
	TerminationMessages map[string]string
	// Health is what probes and hooks have found out about running containers.
	Health map[string]*Health
}

// Running is an action in progress.
type Running struct {
	Action Action
	// KilledBy, of a stop, is when the container is killed at the latest.
	KilledBy time.Time
	// Cancel ends the action early. The plan never calls it.
	Cancel func()
	// VolumeChanges is State.VolumeChanges when the action began.
	VolumeChanges int
}

// ContainerState is what is remembered of a container of the spec over all its attempts.
type ContainerState struct {
	// ImagePresent: the image was found or pulled for the next start.
	ImagePresent bool
	// Backoff is how long to wait after the exit of the newest attempt before the next start. It was set at
	// BackoffSetAt, when that attempt was started.
	Backoff      time.Duration
	BackoffSetAt time.Time
	// AnnouncedBackoff is the attempt whose back-off an Event has announced; -1: none.
	AnnouncedBackoff int
}

// NewState is the initial state, of a pod about which nothing is known.
func NewState() *State {
	return &State{InProgress: map[string]Running{}, Failures: map[string]*Failure{}, EndTimes: map[string]time.Time{},
		Containers: map[string]*ContainerState{}, TerminationMessages: map[string]string{}, Health: map[string]*Health{}}
}

// Container is the state of the container of that name, which is made if there is none.
func (s *State) Container(name string) *ContainerState {
	c := s.Containers[name]
	if c == nil {
		c = &ContainerState{AnnouncedBackoff: -1}
		s.Containers[name] = c
	}
	return c
}

// Container is State.Container without making one: deciding changes nothing.
func (in Input) Container(name string) *ContainerState {
	if c := in.State.Containers[name]; c != nil {
		return c
	}
	return &ContainerState{AnnouncedBackoff: -1}
}

// HealthFor is the health of the container of that id, which is made if there is none.
func (s *State) HealthFor(id string) *Health {
	h := s.Health[id]
	if h == nil {
		h = &Health{}
		s.Health[id] = h
	}
	return h
}

// IsInProgress reports whether the action of that key is being carried out.
func (s *State) IsInProgress(key string) bool {
	_, ok := s.InProgress[key]
	return ok
}

// EndTime converts the time at which the container of that id ended, as the runtime recorded it, to this process's
// monotonic clock, once: durations since then stay right when the machine's clock is set. An end in the future
// becomes now.
func (s *State) EndTime(id string, at, now time.Time) time.Time {
	if t, ok := s.EndTimes[id]; ok {
		return t
	}
	t := now.Add(-max(0, now.Sub(at)))
	s.EndTimes[id] = t
	return t
}
