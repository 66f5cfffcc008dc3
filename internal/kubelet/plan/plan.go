package plan

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"minik8s/internal/kubelet/cri"
)

// Input is everything that a decision is made from. Decide does not change it.
type Input struct {
	// Pod is the API's object; nil once it is deleted.
	Pod *corev1.Pod
	// View is the pod's state in the runtime.
	View cri.Pod
	// State is what the worker remembers.
	State *State
	// StatusWritten: the API already has the status that follows from this input.
	StatusWritten bool
	Now           time.Time
}

// Decision says which actions to start now, and when to decide again if nothing happens before.
type Decision struct {
	Actions []Action
	Wake    time.Time // zero: only when something happens
	// Done: nothing is left of the pod, here or in the API, and the worker may end.
	Done bool
}

// Decide returns what to do next for a pod.
func Decide(in Input) Decision {
	p := planner{Input: in}
	if why := in.Termination(); why != nil {
		p.terminate(*why)
	} else {
		p.run()
	}
	return p.out
}

// planner collects a Decision.
type planner struct {
	Input
	out Decision
}

// add adds an action, unless it is in progress or waits for its retry.
func (p *planner) add(a Action) {
	key := a.Key()
	if p.State.IsInProgress(key) || p.waitsForRetry(key) {
		return
	}
	p.out.Actions = append(p.out.Actions, a)
}

// wakeAt makes the worker decide again at t or earlier.
func (p *planner) wakeAt(t time.Time) {
	if p.out.Wake.IsZero() || t.Before(p.out.Wake) {
		p.out.Wake = t
	}
}

// run decides for a pod that should run. It stops what should not run, then prepares volumes, sandbox and images
// concurrently, then starts the containers.
func (p *planner) run() {
	if !p.State.Admitted {
		return // admission wakes the worker
	}
	if t := Deadline(p.Pod); !t.IsZero() {
		p.wakeAt(t)
	}
	for _, f := range p.State.Failures { // at that time the status changes to ImagePullBackOff
		if t := f.At.Add(PullErrorShownFor); f.Reason == ReasonErrImagePull && p.Now.Before(t) {
			p.wakeAt(t)
		}
	}
	whole := p.View.Sandbox != nil && p.View.Sandbox.Whole
	if !whole && p.stopAll(gracePeriod(p.Pod), "Pod sandbox changed, container %s will be killed and started again") {
		return
	}
	p.removeDead()
	p.stopDuplicates()
	starts := p.startable()
	if !p.State.VolumesReady && len(starts) > 0 || p.State.volumesOutdated(p.Now) && HasChangingVolumes(p.Pod) {
		p.add(Action{Verb: SetUpVolumes})
	} else if !p.State.TokenRenewal.IsZero() {
		p.wakeAt(p.State.TokenRenewal)
	}
	if len(starts) == 0 {
		return
	}
	sandbox := Action{Verb: MakeSandbox}
	if !whole {
		p.add(sandbox)
	}
	ready := p.State.VolumesReady && whole && !p.State.IsInProgress(sandbox.Key())
	for _, a := range starts {
		if !p.Container(a.Container).ImagePresent {
			p.add(Action{Verb: EnsureImage, Container: a.Container})
		} else if _, missing := TargetID(p.Pod, p.View, a.Container); ready && missing == "" {
			p.add(a)
		}
	}
}
