package kubelet

import (
	"maps"
	"strings"
	"time"

	"minik8s/internal/kubelet/cri"
)

// memory is what a worker remembers of its pod between two decisions and cannot read back from the
// API or the runtime. It may be lost: decisions then are repeated, never wrong.
type memory struct {
	admitted bool
	rejected *verdict // by admission; the pod has failed
	// ephemeral is how many ephemeral containers the pod had when it was last seen which objects it names.
	ephemeral int
	flights   map[string]flight
	failures  map[string]*failure // by action key, until the action succeeds
	volumes   bool                // set up, in this life of the daemon
	// volumeChanges counts what volumes that follow objects have to take in; volumesAt is how much they have.
	volumeChanges, volumesAt int
	// tokensDue is when a token in a volume is to be renewed; zero: there is none.
	tokensDue time.Time
	tornDown  bool // volumes, cgroup and so on are undone
	forgotten bool // and the logs, which a finished pod keeps
	deleted   bool // the API object is deleted
	// deletionSeen is when the kubelet heard of the deletion by which the pod ends.
	deletionSeen time.Time
	// ends are when exited containers ended, by id and by a clock that nobody sets.
	ends       map[string]time.Time
	containers map[string]*containerMemory
	// messages are the termination messages of exited containers, by id.
	messages map[string]string
	// health is what probes and hooks have said of running containers, by id.
	health map[string]*health
}

// flight is an action that is being done.
type flight struct {
	act action
	// deadline, of a stop, is when the container is killed at last.
	deadline time.Time
	cancel   func()
}

// failure is an action that failed and when it may be tried again.
type failure struct {
	reason, message string
	at, until       time.Time
	delay           time.Duration
	told            bool // that it is waited for, by an Event
	held            bool // until an object that the pod names changes; no time ends it
}

// containerMemory is the memory about one container of the spec.
type containerMemory struct {
	// image: present, or pulled, for the start that comes next.
	image bool
	// delay is how long to wait after the exit of the newest attempt before the next start; set
	// at its start. updated is that moment.
	delay   time.Duration
	updated time.Time
	// toldBackoff is the attempt whose back-off was announced by an Event.
	toldBackoff int
}

func newMemory() *memory {
	return &memory{flights: map[string]flight{}, failures: map[string]*failure{},
		containers: map[string]*containerMemory{}, messages: map[string]string{}, health: map[string]*health{}, ends: map[string]time.Time{}}
}

func (m *memory) container(name string) *containerMemory {
	cm := m.containers[name]
	if cm == nil {
		cm = &containerMemory{toldBackoff: -1}
		m.containers[name] = cm
	}
	return cm
}

// ended turns the time of an end, which the runtime has written down, into one of the kubelet's clock: what is
// counted from it does not change when the machine's clock is set, and no end lies in the future.
func (m *memory) ended(id string, at, now time.Time) time.Time {
	if t, ok := m.ends[id]; ok {
		return t
	}
	t := now.Add(-max(0, now.Sub(at)))
	m.ends[id] = t
	return t
}

func (m *memory) healthFor(id string) *health {
	h := m.health[id]
	if h == nil {
		h = &health{}
		m.health[id] = h
	}
	return h
}

func (m *memory) inFlight(key string) bool {
	_, ok := m.flights[key]
	return ok
}

// fail notes that an action failed; its delay doubles from lo to hi.
func (m *memory) fail(key, reason, message string, now time.Time, lo, hi time.Duration) *failure {
	f := m.failures[key]
	if f == nil {
		f = &failure{}
		m.failures[key] = f
	}
	switch {
	case f.delay == 0:
		f.delay = lo
	default:
		f.delay = min(2*f.delay, hi)
	}
	f.reason, f.message, f.at, f.until, f.told = reason, message, now, now.Add(f.delay), false
	return f
}

// forgetImages lets every image that could not be had be tried again at once.
func (m *memory) forgetImages() {
	maps.DeleteFunc(m.failures, func(key string, _ *failure) bool {
		return strings.HasPrefix(key, ensureImage.String()+"/")
	})
}

// objectsChanged takes in that an object which the pod names has changed: what was missing is looked for
// again, and volumes that follow it are brought up to date.
func (m *memory) objectsChanged() {
	maps.DeleteFunc(m.failures, func(_ string, f *failure) bool { return f.held })
	m.volumeChanges++
}

// volumesBehind says that volumes which follow objects are not known to have taken in all changes, or that
// a token is to be renewed.
func (m *memory) volumesBehind(now time.Time) bool {
	return !m.volumes || m.volumesAt < m.volumeChanges || !m.tokensDue.IsZero() && !now.Before(m.tokensDue)
}

const (
	crashBackoff    = 10 * time.Second
	maxCrashBackoff = 5 * time.Minute
	// goodRun is how long a container must run for its back-off to start over.
	goodRun = 2 * maxCrashBackoff
)

// restartAt is when the exited container c may be started again, and the back-off that is counted
// for it; zero: at once.
func (cm *containerMemory) restartAt(c *cri.Container) (time.Time, time.Duration) {
	if c.Lost { // it did nothing wrong
		return time.Time{}, 0
	}
	delay, updated := cm.delay, cm.updated
	if updated.IsZero() { // not started in this life of the daemon: guess from the attempts
		delay, updated = guessDelay(c.Attempt), c.CreatedAt
	}
	if delay == 0 || c.FinishedAt.Sub(updated) > goodRun {
		return time.Time{}, 0
	}
	return c.FinishedAt.Add(delay), delay
}

// restarted notes the start of an attempt after the exit of prev (nil: the first attempt).
func (cm *containerMemory) restarted(prev *cri.Container, now time.Time) {
	if prev == nil || prev.Lost {
		cm.delay, cm.updated = 0, now
		return
	}
	_, delay := cm.restartAt(prev)
	if delay == 0 {
		delay = crashBackoff
	} else {
		delay = min(2*delay, maxCrashBackoff)
	}
	cm.delay, cm.updated = delay, now
}

// guessDelay is the back-off after the given attempt if none of the runs was good.
func guessDelay(attempt int) time.Duration {
	if attempt <= 0 {
		return 0
	}
	if attempt > 5 {
		return maxCrashBackoff
	}
	return min(crashBackoff<<(attempt-1), maxCrashBackoff)
}
