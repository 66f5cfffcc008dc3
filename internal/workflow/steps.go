package workflow

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"minik8s/internal/api/minik8s"
	"minik8s/internal/client"
	"minik8s/internal/clock"
	"minik8s/internal/controller/owner"
	"minik8s/internal/workflow/asl"
)

// place is where a step is in its run.
type place struct {
	branch string
	number int64
}

func placeOf(s *minik8s.WorkflowStep) place { return place{s.Spec.Branch, s.Spec.Number} }

func (p place) String() string {
	if p.branch == "" {
		return strconv.FormatInt(p.number, 10)
	}
	return p.branch + "." + strconv.FormatInt(p.number, 10)
}

// stepName is the name of a step: the place in the run, and of the UID enough to tell it from those of an older run of the name.
func stepName(r *minik8s.WorkflowRun, at place) string {
	return fmt.Sprintf("%s.%s.%s", r.Name, r.UID[:min(8, len(r.UID))], at)
}

// maxStored is what the steps of a run may have as data, in bytes. They are in the store until the run goes.
const maxStored = 32 << 20

// dataOf is what a step has as data, as long as it is in the store: escapes, as \u003c for <, make it up to six times as long as here.
func dataOf(s *minik8s.WorkflowStepSpec) int64 {
	data, _ := json.Marshal(struct { //nolint:errcheck // what cannot be written as JSON is not stored either
		Output minik8s.JSON `json:"output,omitzero"`
		Error  string       `json:"error,omitempty"`
		Cause  string       `json:"cause,omitempty"`
	}{s.Output, s.Error, s.Cause})
	return int64(max(0, len(data)-len("{}")))
}

// reserve takes one of the transitions that the run may have. The last is for the one with which it ends.
func (x *run) reserve(ends bool) error {
	for most := x.object.Status.MaxSteps; ; {
		n := x.steps.Load()
		if n >= most || n == most-1 && !ends {
			return x.exceed("Workflow.StepLimit", "the run has had %d transitions and does not end; maxSteps says how many it may have", n)
		}
		if x.steps.CompareAndSwap(n, n+1) {
			return nil
		}
	}
}

// exceed ends the run, since it has met one of its bounds. Nothing of the run can handle that, and no step says it.
func (x *run) exceed(name, format string, args ...any) error {
	e := &asl.Error{Name: name, Cause: fmt.Sprintf(format, args...)}
	x.stop(e)
	return e
}

// kept is what is kept of an error, whoever made its texts: the beginning of its name, and the end of its cause, where a traceback says what it is.
// Retry and Catch see no more than that, so that they do the same when the error is read again.
func kept(e *asl.Error) *asl.Error {
	out := *e
	if name := e.Name; len(name) > minik8s.MaxErrorName {
		n := minik8s.MaxErrorName
		for n > 0 && !utf8.RuneStart(name[n]) {
			n--
		}
		out.Name = name[:n]
	}
	if cause := e.Cause; len(cause) > minik8s.MaxErrorCause {
		const more = "..."
		n := len(cause) - minik8s.MaxErrorCause + len(more)
		for n < len(cause) && !utf8.RuneStart(cause[n]) {
			n++
		}
		out.Cause = more + cause[n:]
	}
	// The store takes UTF-8 only. A longer mark than this could make more of a text than it may have.
	out.Name, out.Cause = strings.ToValidUTF8(out.Name, "?"), strings.ToValidUTF8(out.Cause, "?")
	return &out
}

// commit makes a step, of a transition that has been reserved, and counts its data. If the step is there already, from a try of which nobody has
// learned that it was successful, that one counts, and it is returned. A branch that is cancelled meanwhile does not stop it, so that nobody has to
// guess whether the step is in the store and counts; the end of the run does.
func (x *run) commit(ctx context.Context, spec minik8s.WorkflowStepSpec) (*minik8s.WorkflowStep, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	size := dataOf(&spec)
	if x.stored.Add(size) > maxStored {
		x.stored.Add(-size)
		return nil, x.exceed("Workflow.DataLimit", "what the states of the run have passed on is more than the %d bytes that a run may keep; state %s would add %d", maxStored, spec.State, size)
	}
	made, err := x.create(x.of, spec)
	if err != nil {
		x.stored.Add(-size)
		return nil, err
	}
	x.stored.Add(dataOf(&made.Spec) - size)
	return made, nil
}

// create has a step in the store, or says why it cannot be there.
func (x *run) create(ctx context.Context, spec minik8s.WorkflowStepSpec) (*minik8s.WorkflowStep, error) {
	r := x.object
	spec.Run, spec.Time = r.Name, metav1.NewMicroTime(clock.Now())
	s := &minik8s.WorkflowStep{ObjectMeta: metav1.ObjectMeta{Namespace: r.Namespace, Name: stepName(r, place{spec.Branch, spec.Number}),
		OwnerReferences: []metav1.OwnerReference{owner.Ref(r)}}, Spec: spec}
	for pause := firstPause; ; pause = min(2*pause, lastPause) {
		obj, err := x.w.client.Create(ctx, s, client.WriteOptions{})
		if apierrors.IsAlreadyExists(err) {
			obj, err = x.w.client.Get(ctx, client.KeyOf(s))
		}
		if err == nil {
			made := obj.(*minik8s.WorkflowStep)
			if ownerOf(made) != r.UID {
				return nil, fmt.Errorf("workflowstep %s is there already and is none of this run's: delete it, and run again", made.Name)
			}
			return made, nil
		}
		if apierrors.IsInvalid(err) || apierrors.IsRequestEntityTooLargeError(err) {
			return nil, err
		}
		if err := sleep(ctx, pause); err != nil {
			return nil, err
		}
	}
}
