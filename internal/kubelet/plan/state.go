package plan

import "time"

// State is what a worker remembers of its pod between two decisions and cannot read from the API or the runtime. It may
// be lost: decisions are then repeated, but never wrong.
type State struct {
	// Admitted: the pod may run here. Rejected says why it may not, so that it fails.
	Admitted bool
	Rejected *Rejection
	// InProgress are the actions being carried out. Failures are those that failed and have not yet succeeded. Both are
	// by the action's key.
	InProgress map[string]Running
	Failures   map[string]*Failure
	// VolumesReady: this process has set up the volumes.
	VolumesReady bool
	// VolumeChanges counts changes of objects whose content is in volumes. VolumesApplied is the count at the last
	// update of the volumes.
	VolumeChanges, VolumesApplied int
	// TokenRenewal is when a token in a volume must be renewed; zero: there is none.
	TokenRenewal time.Time
	// TornDown: volumes and cgroup are removed. LogsRemoved: the logs are removed too; a finished pod keeps them.
	TornDown, LogsRemoved bool
	// ObjectDeleted: the API's object is deleted.
	ObjectDeleted bool
	// Shutdown: the pod ends because the machine shuts down; nil: it does not.
	Shutdown *Shutdown
	// DeletionSeen is when the kubelet first saw that the pod is being deleted.
	DeletionSeen time.Time
	// EndTimes says when exited containers ended, by id, on this process's monotonic clock.
	EndTimes map[string]time.Time
	// Containers is by the container's name in the spec; the maps below are by the id of one attempt.
	Containers          map[string]*ContainerState
	TerminationMessages map[string]string
	// Health has the results of probes and hooks of running containers.
	Health map[string]*Health
}

// Shutdown is how long a pod may take to end when the machine shuts down, from the time At on.
type Shutdown struct {
	At     time.Time
	Within time.Duration
}

// Running is an action in progress.
type Running struct {
	Action Action
	// KilledBy, for a stop, is the latest time at which the container is killed.
	KilledBy time.Time
	// Cancel ends the action early. The plan never calls it.
	Cancel func()
	// VolumeChanges is State.VolumeChanges when the action began.
	VolumeChanges int
}

// ContainerState is what is remembered of a container in the spec, over all its attempts.
type ContainerState struct {
	// ImagePresent: the image for the next start was found or pulled.
	ImagePresent bool
	// Backoff is how long the next start waits after the newest attempt has exited. It was set at BackoffSetAt, when
	// that attempt was started.
	Backoff      time.Duration
	BackoffSetAt time.Time
	// AnnouncedBackoff is the attempt whose back-off an Event has announced; -1: none.
	AnnouncedBackoff int
}

// NewState returns the initial state of a pod, about which nothing is known yet.
func NewState() *State {
	return &State{InProgress: map[string]Running{}, Failures: map[string]*Failure{}, EndTimes: map[string]time.Time{},
		Containers: map[string]*ContainerState{}, TerminationMessages: map[string]string{}, Health: map[string]*Health{}}
}

// Container returns the state of the container of that name, and creates it if there is none.
func (s *State) Container(name string) *ContainerState {
	c := s.Containers[name]
	if c == nil {
		c = &ContainerState{AnnouncedBackoff: -1}
		s.Containers[name] = c
	}
	return c
}

// Container is like State.Container, but creates nothing, because a decision must not change its input.
func (in Input) Container(name string) *ContainerState {
	if c := in.State.Containers[name]; c != nil {
		return c
	}
	return &ContainerState{AnnouncedBackoff: -1}
}

// HealthFor returns the health of the container of that id, and creates it if there is none.
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

// EndTime converts the time at which a container ended, as recorded by the runtime, to this process's monotonic clock.
// It does so once per container, so that durations stay right when the machine's clock is set. An end in the future
// becomes now.
func (s *State) EndTime(id string, at, now time.Time) time.Time {
	if t, ok := s.EndTimes[id]; ok {
		return t
	}
	t := now.Add(-max(0, now.Sub(at)))
	s.EndTimes[id] = t
	return t
}
