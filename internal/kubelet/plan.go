package kubelet

import (
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"

	"minik8s/internal/kubelet/cri"
)

// input is all that a decision is made from. decide changes none of it.
type input struct {
	// pod is the API's object; nil once it is gone.
	pod *corev1.Pod
	// view is what the runtime holds.
	view cri.Pod
	mem  *memory
	// settled: the API has the status that follows from all this.
	settled bool
	now     time.Time
}

// plan is a decision: what to begin now, and when to look again though nothing happens.
type plan struct {
	actions []action
	wake    time.Time // zero: no need
	// done: nothing is left of the pod, here or in the API; the worker may end.
	done bool
}

type verb int

// The actions, each idempotent. Those of one pod run side by side.
const (
	setUpVolumes verb = iota
	makeSandbox
	ensureImage
	startContainer // creates and starts it
	stopContainer
	removeContainer
	removeSandbox
	tearDown // volumes, cgroup, files
	deleteObject
)

var verbNames = [...]string{"volumes", "sandbox", "image", "start", "stop", "remove", "removeSandbox",
	"tearDown", "delete"}

func (v verb) String() string { return verbNames[v] }

// action is one thing to do.
type action struct {
	verb      verb
	container string // name in the spec
	id        string // of the container in the runtime
	attempt   int
	grace     time.Duration
	why       string // shown to people
	changes   int    // of objects, that had been heard of when it began
}

// key names the action; one of a key is done at a time.
func (a action) key() string {
	switch a.verb {
	case ensureImage, startContainer:
		return a.verb.String() + "/" + a.container
	case stopContainer: // a shorter grace overtakes a longer one
		return a.verb.String() + "/" + a.id + "/" + strconv.Itoa(int(a.grace/time.Second))
	case removeContainer:
		return a.verb.String() + "/" + a.id
	default:
		return a.verb.String()
	}
}

// decide says what to do next for a pod. It is pure.
func decide(in input) plan {
	d := decision{input: in}
	if why := in.endReason(); why != nil {
		d.end(*why)
	} else {
		d.run()
	}
	return d.plan
}

type decision struct {
	input
	plan plan
}

// begin adds an action unless it is being done or has to wait after a failure. It says whether the
// action is still to come in any of these ways.
func (d *decision) begin(a action) {
	key := a.key()
	if d.mem.inFlight(key) {
		return
	}
	if d.waits(key) {
		return
	}
	d.plan.actions = append(d.plan.actions, a)
}

// waits says that an action has failed and is not to be tried again yet, and sees to the waking.
func (d *decision) waits(key string) bool {
	f := d.mem.failures[key]
	if f == nil || !f.held && !d.now.Before(f.until) {
		return false
	}
	if !f.held {
		d.wakeAt(f.until)
	}
	return true
}

func (d *decision) wakeAt(t time.Time) {
	if d.plan.wake.IsZero() || t.Before(d.plan.wake) {
		d.plan.wake = t
	}
}

// newestStarted is newest, but of those that have been started. One that is only created says nothing
// about the pod yet.
func newestStarted(view cri.Pod, name string) *cri.Container {
	var found *cri.Container
	for i := range view.Containers {
		c := &view.Containers[i]
		if c.Name == name && c.State != cri.Created && (found == nil || c.Attempt > found.Attempt) {
			found = c
		}
	}
	return found
}

// newest is the container of that name with the highest attempt; nil if there is none.
func newest(view cri.Pod, name string) *cri.Container {
	var found *cri.Container
	for i := range view.Containers {
		c := &view.Containers[i]
		if c.Name == name && (found == nil || c.Attempt > found.Attempt) {
			found = c
		}
	}
	return found
}

// run decides for a pod that is to run.
func (d *decision) run() {
	if !d.mem.admitted {
		return // admission comes first; its verdict wakes us
	}
	if t := deadline(d.pod); !t.IsZero() {
		d.wakeAt(t)
	}
	for _, f := range d.mem.failures { // the status changes its words then
		if t := f.at.Add(pullErrorShown); f.reason == reasonErrImagePull && d.now.Before(t) {
			d.wakeAt(t)
		}
	}
	whole := d.view.Sandbox != nil && d.view.Sandbox.Whole
	if !whole && d.stopAll(specGrace(d.pod), "Pod sandbox changed, container %s will be killed and started again") {
		return
	}
	d.dropOld()
	d.dropStrangers()
	due := d.due()
	if !d.mem.volumes && len(due) > 0 || d.mem.volumesBehind(d.now) && hasChangingVolumes(d.pod) {
		d.begin(action{verb: setUpVolumes})
	} else if !d.mem.tokensDue.IsZero() {
		d.wakeAt(d.mem.tokensDue)
	}
	if len(due) == 0 {
		return
	}
	sandbox := action{verb: makeSandbox}
	if !whole {
		d.begin(sandbox)
	}
	ready := d.mem.volumes && whole && !d.mem.inFlight(sandbox.key())
	for _, a := range due {
		if !d.memoryOf(a.container).image {
			d.begin(action{verb: ensureImage, container: a.container})
		} else if _, missing := targetID(d.pod, d.view, a.container); ready && missing == "" {
			d.begin(a)
		}
	}
}

// dropOld removes dead containers, but for the newest of a name and the one before, whose log can
// still be asked for.
func (d *decision) dropOld() {
	for _, c := range d.view.Containers {
		if c.State == cri.Running {
			continue
		}
		younger := 0
		for _, o := range d.view.Containers {
			if o.Name == c.Name && o.Attempt > c.Attempt {
				younger++
			}
		}
		if younger >= 2 || younger == 1 && c.State == cri.Created {
			d.begin(action{verb: removeContainer, container: c.Name, id: c.ID, attempt: c.Attempt})
		}
	}
}

// dropStrangers ends containers that should not run: an older attempt beside a newer one.
func (d *decision) dropStrangers() {
	for _, c := range d.view.Containers {
		if n := newest(d.view, c.Name); c.State == cri.Running && n.ID != c.ID {
			d.stop(&c, orphanGrace, "Stopping container %s, which runs twice")
		}
	}
}
