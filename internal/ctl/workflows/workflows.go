package workflows

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"

	"minik8s/internal/api"
	"minik8s/internal/api/minik8s"
	"minik8s/internal/client"
	"minik8s/internal/ctl/exit"
	"minik8s/internal/ctl/session"
	"minik8s/internal/workflow/asl"
	"minik8s/internal/workflow/graph"
)

// Run starts a run of a workflow. Without input it gets the workflow's params.
func Run(ctx context.Context, s *session.Session, namespace, name, input string) (*minik8s.WorkflowRun, error) {
	if _, err := client.Get[*minik8s.Workflow](ctx, s.API, client.Key{Kind: api.Workflows, Namespace: namespace, Name: name}); err != nil {
		return nil, err
	}
	var in minik8s.JSON // none: the params that the workflow has when the run begins
	if input != "" {
		if !json.Valid([]byte(input)) {
			return nil, exit.Usagef("--data %q is not JSON; a text is written in quotes: '\"hello\"'", input)
		}
		in.Raw = []byte(input)
	}
	r := &minik8s.WorkflowRun{TypeMeta: metav1.TypeMeta{APIVersion: api.WorkflowRuns.APIVersion(), Kind: api.WorkflowRuns.Kind},
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, GenerateName: name + "-"},
		Spec:       minik8s.WorkflowRunSpec{Workflow: name, Input: in}}
	made, err := s.API.Create(ctx, r, client.WriteOptions{FieldManager: session.Manager})
	if err != nil {
		return nil, err
	}
	return made.(*minik8s.WorkflowRun), nil
}

// named is the workflow and the run of a name; nil where there is none. asRun: it is only a run's, as people say who mean the run of a name
// that a workflow has, too.
func named(ctx context.Context, s *session.Session, namespace, name string, asRun bool) (w *minik8s.Workflow, r *minik8s.WorkflowRun, err error) {
	r, err = client.Get[*minik8s.WorkflowRun](ctx, s.API, client.Key{Kind: api.WorkflowRuns, Namespace: namespace, Name: name})
	if apierrors.IsNotFound(err) && !asRun {
		r, err = nil, nil
	}
	if err != nil || asRun {
		return nil, r, err
	}
	w, err = client.Get[*minik8s.Workflow](ctx, s.API, client.Key{Kind: api.Workflows, Namespace: namespace, Name: name})
	if apierrors.IsNotFound(err) {
		w, err = nil, nil
	}
	if w != nil && r != nil {
		return nil, nil, exit.Usagef("%q is a workflow and a run of workflow %s: add --run if the run is meant, or name a run of the workflow (minik8sd ctl get workflowruns)", name, r.Spec.Workflow)
	}
	return w, r, err
}

// Find is the run of a name, or the newest one of the workflow of that name.
func Find(ctx context.Context, s *session.Session, namespace, name string, asRun bool) (*minik8s.WorkflowRun, error) {
	w, r, err := named(ctx, s, namespace, name, asRun)
	switch {
	case err != nil || r != nil:
		return r, err
	case w == nil:
		return nil, exit.Failf(exit.NotFound, "there is no run and no workflow %q in namespace %s (minik8sd ctl wf get)", name, namespace)
	}
	if err := started(ctx, s, w); err != nil {
		return nil, err
	}
	runs, _, err := client.All[*minik8s.WorkflowRun](ctx, s.API, api.WorkflowRuns, client.ListOptions{Namespace: namespace, Fields: fields.OneTermEqualSelector("spec.workflow", name)})
	switch {
	case err != nil:
		return nil, err
	case len(runs) == 0:
		return nil, exit.Failf(exit.NotFound, "workflow %s has no runs; start one: minik8sd ctl wf run %s", name, name)
	}
	return slices.MaxFunc(runs, later), nil
}

// startTime is how long a run is waited for that the workflow starts with its params, when it is made or changed: no time at all, unless no
// master leads.
const startTime = 10 * time.Second

// started waits until that run is there: whoever has just applied a workflow means its run.
func started(ctx context.Context, s *session.Session, w *minik8s.Workflow) (err error) {
	for end := time.Now().Add(startTime); !w.Spec.Params.IsZero() && w.Status.ObservedGeneration < w.Generation && time.Now().Before(end); {
		select {
		case <-time.After(20 * time.Millisecond):
		case <-ctx.Done():
			return ctx.Err()
		}
		if w, err = client.Get[*minik8s.Workflow](ctx, s.API, client.KeyOf(w)); err != nil {
			return err
		}
	}
	return nil
}

// later compares runs by when they were made. That is known by the second, and when they began by the microsecond.
func later(a, b *minik8s.WorkflowRun) int {
	begun := func(r *minik8s.WorkflowRun) time.Time {
		if r.Status.StartTime == nil {
			return time.Unix(1<<40, 0) // later than all that have begun
		}
		return r.Status.StartTime.Time
	}
	return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), begun(a).Compare(begun(b)), cmp.Compare(a.Name, b.Name))
}

// Steps are a run's steps, in the order in which they were made: that of the store, since their times are those of several clocks after a failover.
func Steps(ctx context.Context, s *session.Session, r *minik8s.WorkflowRun) ([]*minik8s.WorkflowStep, error) {
	all, _, err := client.All[*minik8s.WorkflowStep](ctx, s.API, api.WorkflowSteps, client.ListOptions{Namespace: r.Namespace, Fields: fields.OneTermEqualSelector("spec.run", r.Name)})
	own := slices.DeleteFunc(all, func(x *minik8s.WorkflowStep) bool {
		ref := metav1.GetControllerOfNoCopy(x)
		return ref == nil || ref.UID != r.UID
	})
	slices.SortStableFunc(own, func(a, b *minik8s.WorkflowStep) int {
		order, _ := resourceversion.CompareResourceVersion(a.ResourceVersion, b.ResourceVersion) //nolint:errcheck // what the server sends has one
		return order
	})
	return own, err
}

// Watch prints a run's steps as they come, and then how it has ended. The error is that it has failed.
func Watch(ctx context.Context, s *session.Session, r *minik8s.WorkflowRun) error {
	shown := map[string]bool{}
	for {
		now, err := client.Get[*minik8s.WorkflowRun](ctx, s.API, client.KeyOf(r))
		switch {
		case apierrors.IsNotFound(err), err == nil && now.UID != r.UID:
			return exit.Failf(exit.NotFound, "run %s has been deleted", r.Name)
		case err != nil:
			return err
		}
		steps, err := Steps(ctx, s, now) // after the run: all of one that has ended are there
		if err != nil {
			return err
		}
		for _, x := range steps {
			if !shown[x.Name] {
				shown[x.Name] = true
				s.Say("%s", line(&x.Spec))
			}
		}
		if now.Status.Ended() {
			return Ended(s, now)
		}
		if !s.Sleep(ctx, 200*time.Millisecond) {
			return nil
		}
	}
}

// line is a step for people.
func line(x *minik8s.WorkflowStepSpec) string {
	at := fmt.Sprint(x.Number)
	if x.Branch != "" {
		at = x.Branch + "." + at
	}
	out := fmt.Sprintf("%s  %-8s %s  %s", x.Time.Format("15:04:05.000"), at, x.State, x.Event)
	if x.Error != "" {
		out += "  " + x.Error
	}
	if x.Next != "" {
		out += " -> " + x.Next
	}
	if !x.Output.IsZero() && x.Event == minik8s.StepSucceeded {
		out += "  " + string(x.Output.Raw)
	}
	return out
}

// Ended prints how a run has ended.
func Ended(s *session.Session, r *minik8s.WorkflowRun) error {
	x := &r.Status
	if x.State == minik8s.RunSucceeded {
		s.Say("%s: %s after %d steps: %s", r.Name, x.State, x.Steps, x.Output.Raw)
		return nil
	}
	return exit.Failf(exit.Failed, "%s: %s after %d steps: %s", r.Name, x.State, x.Steps, strings.TrimSuffix(x.Error+": "+x.Cause, ": "))
}

// Cancel ends a run.
func Cancel(ctx context.Context, s *session.Session, r *minik8s.WorkflowRun) error {
	if r.Status.Ended() {
		return exit.Failf(exit.Failed, "run %s has ended: %s", r.Name, r.Status.State)
	}
	_, err := s.API.Patch(ctx, client.KeyOf(r), client.Patch{Type: types.MergePatchType, Data: []byte(`{"spec":{"cancel":true}}`)}, client.WriteOptions{FieldManager: session.Manager})
	return err
}

// Graph draws the workflow of a name, or the run, or the chain of functions that begins with the function. svg: as a picture.
func Graph(ctx context.Context, s *session.Session, namespace, name string, asRun, svg bool) (string, error) {
	definition, r, err := drawable(ctx, s, namespace, name, asRun)
	if err != nil {
		return "", err
	}
	m, errs := asl.Parse(definition, nil)
	if len(errs) > 0 {
		return "", errs.ToAggregate()
	}
	var taken *graph.Taken
	if r != nil {
		steps, err := Steps(ctx, s, r)
		if err != nil {
			return "", err
		}
		taken = graph.TakenBy(m, steps, !r.Status.Ended())
	}
	if svg {
		return graph.SVG(m, taken), nil
	}
	return graph.Text(m, taken), nil
}

// drawable is the definition of what has a name, and the run, if it is one.
func drawable(ctx context.Context, s *session.Session, namespace, name string, asRun bool) ([]byte, *minik8s.WorkflowRun, error) {
	w, r, err := named(ctx, s, namespace, name, asRun)
	switch {
	case err != nil:
		return nil, nil, err
	case w != nil:
		return w.Spec.Definition.Raw, nil, nil
	case r == nil:
		chain, err := Chain(ctx, s, namespace, name)
		if apierrors.IsNotFound(err) {
			return nil, nil, exit.Failf(exit.NotFound, "there is no workflow, no run and no function %q in namespace %s", name, namespace)
		}
		if err != nil {
			return nil, nil, err
		}
		definition, err := json.Marshal(chain)
		return definition, nil, err
	case r.Status.Definition.IsZero() && r.Status.Ended():
		return nil, nil, exit.Failf(exit.Failed, "run %s has ended before it had a definition: %s: %s", name, r.Status.Error, r.Status.Cause)
	case r.Status.Definition.IsZero():
		return nil, nil, exit.Failf(exit.Failed, "run %s has not begun yet; try again", name)
	}
	return r.Status.Definition.Raw, r, nil
}
