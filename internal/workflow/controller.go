package workflow

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"minik8s/internal/api"
	"minik8s/internal/api/minik8s"
	"minik8s/internal/client"
	"minik8s/internal/clock"
	"minik8s/internal/controller/loop"
	"minik8s/internal/controller/owner"
	"minik8s/internal/informer"
	"minik8s/internal/supervise"
	"minik8s/internal/workflow/asl"
)

// ControllerName is the part's name.
const ControllerName = "workflow-controller"

// Controller runs Workflows.
type Controller struct {
	client    client.Interface
	caller    Caller
	log       *slog.Logger
	workflows *informer.Informer[*minik8s.Workflow]
	runs      *informer.Informer[*minik8s.WorkflowRun]
	functions *informer.Informer[*minik8s.Function]
	loop      *loop.Loop
	running   *loop.Loop
	tasks     *supervise.Tasks // of this Run

	evaluations chan struct{} // has one for each evaluation that goes on

	mu     sync.Mutex
	calls  map[loop.Key][]string  // the functions that each workflow names
	active map[types.UID]*run     // runs that are under way here, until the informer shows their end
	past   map[types.UID]*history // steps of runs that were under way when this master began to lead
}

// The causes for which a run that is under way is ended here.
var (
	errCancelled = errors.New("the run has been cancelled")
	errDeleted   = errors.New("the run has been deleted")
)

// NewController makes the controller.
func NewController(c client.Interface, views *informer.Views, caller Caller, log *slog.Logger) *Controller {
	opts := informer.Options{Views: views, Log: log}
	w := &Controller{client: c, caller: caller, log: log,
		workflows: informer.New[*minik8s.Workflow](c, api.Workflows, opts),
		runs:      informer.New[*minik8s.WorkflowRun](c, api.WorkflowRuns, opts),
		functions: informer.New[*minik8s.Function](c, api.Functions, opts),
		calls:     map[loop.Key][]string{}, active: map[types.UID]*run{}, evaluations: make(chan struct{}, runtime.GOMAXPROCS(0)),
	}
	w.loop = loop.New("workflow", log, w.reconcile)
	w.running = loop.New("workflowrun", log, w.advance)
	w.workflows.OnChange(func(old, now *minik8s.Workflow) {
		if now == nil {
			w.mu.Lock()
			delete(w.calls, keyOf(old))
			w.mu.Unlock()
			return
		}
		w.loop.Add(keyOf(now))
	})
	w.functions.OnChange(func(old, now *minik8s.Function) {
		switch {
		case old == nil:
			w.named(now)
		case now == nil:
			w.named(old)
		}
	})
	w.runs.OnChange(func(old, now *minik8s.WorkflowRun) {
		if now == nil || now.DeletionTimestamp != nil {
			w.end(old, now)
			return
		}
		w.running.Add(keyOf(now))
	})
	return w
}

func keyOf(o api.Object) loop.Key { return loop.Key{Namespace: o.GetNamespace(), Name: o.GetName()} }

// named has the workflows looked at that name a function which has come or gone.
func (w *Controller) named(f *minik8s.Function) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for key, names := range w.calls {
		if key.Namespace == f.Namespace && slices.Contains(names, f.Name) {
			w.loop.Add(key)
		}
	}
}

// end ends a run that has been deleted.
func (w *Controller) end(versions ...*minik8s.WorkflowRun) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, r := range versions {
		if r == nil {
			continue
		}
		if x := w.active[r.UID]; x != nil {
			x.stop(errDeleted)
			delete(w.active, r.UID)
		}
	}
}

// Run works until ctx ends.
func (w *Controller) Run(ctx context.Context, ready func()) error {
	w.tasks = supervise.NewTasks(ctx)
	w.tasks.Go(func(ctx context.Context) error {
		return loop.Drive(ctx, ready, []supervise.Source{w.workflows, w.functions, w.runs, source(w.recall)}, w.loop.Workers(1), w.running.Workers(4))
	})
	return w.tasks.Wait()
}

type source func(ctx context.Context, ready func()) error

func (s source) Run(ctx context.Context, ready func()) error { return s(ctx, ready) }

// recall reads the steps of the runs that are under way when this master begins to lead: of the namespaces that have such runs, once for all
// of them. Nothing is kept of other runs.
func (w *Controller) recall(ctx context.Context, ready func()) error {
	past, namespaces := map[types.UID]*history{}, map[string]bool{}
	for _, r := range w.runs.List() {
		if r.Status.State == minik8s.RunRunning {
			past[r.UID], namespaces[r.Namespace] = newHistory(), true
		}
	}
	for namespace := range namespaces {
		err := eachStep(ctx, w.client, client.ListOptions{Namespace: namespace}, func(s *minik8s.WorkflowStep) {
			if h := past[ownerOf(s)]; h != nil {
				h.add(s)
			}
		})
		if err != nil {
			return err
		}
	}
	w.mu.Lock()
	w.past = past
	w.mu.Unlock()
	ready()
	<-ctx.Done()
	return nil
}

// stepsAtOnce is how many steps are read at once: each may have as much as a state may pass on.
const stepsAtOnce = 100

// eachStep reads steps, a part of them at a time.
func eachStep(ctx context.Context, c client.Interface, opts client.ListOptions, do func(*minik8s.WorkflowStep)) error {
	for opts.Limit = stepsAtOnce; ; {
		page, err := c.List(ctx, api.WorkflowSteps, opts)
		if err != nil {
			return err
		}
		for _, obj := range page.Items {
			do(obj.(*minik8s.WorkflowStep))
		}
		if opts.Continue = page.Continue; opts.Continue == "" {
			return nil
		}
	}
}

// ownerOf is the UID of the run that a step is of.
func ownerOf(s *minik8s.WorkflowStep) types.UID {
	if ref := metav1.GetControllerOfNoCopy(s); ref != nil {
		return ref.UID
	}
	return ""
}

// reconcile says whether a workflow's functions exist, and starts the run of a change.
func (w *Controller) reconcile(ctx context.Context, key loop.Key) error {
	wf, ok := w.workflows.Get(key.Namespace, key.Name)
	if !ok || wf.DeletionTimestamp != nil {
		return nil
	}
	m, errs := asl.Parse(wf.Spec.Definition.Raw, nil)
	if len(errs) > 0 {
		return errs.ToAggregate() // the registry takes none such
	}
	names := m.Functions()
	w.mu.Lock()
	w.calls[key] = names
	w.mu.Unlock()
	ready := metav1.Condition{Type: minik8s.WorkflowReady, Status: metav1.ConditionTrue, Reason: "Ready", Message: "all its functions exist",
		ObservedGeneration: wf.Generation, LastTransitionTime: metav1.NewTime(clock.Now())}
	var missing []string
	for _, name := range names {
		if _, ok := w.functions.Get(key.Namespace, name); !ok {
			missing = append(missing, name)
		}
	}
	if len(missing) > 0 {
		ready.Status, ready.Reason, ready.Message = metav1.ConditionFalse, "FunctionMissing", "there is no function "+strings.Join(missing, ", ")
	}
	status := wf.DeepCopy().Status
	if wf.Generation != wf.Status.ObservedGeneration && !wf.Spec.Params.IsZero() {
		r := &minik8s.WorkflowRun{ObjectMeta: metav1.ObjectMeta{Namespace: wf.Namespace, Name: fmt.Sprintf("%s-%s-%d", wf.Name, wf.UID[:5], wf.Generation),
			OwnerReferences: []metav1.OwnerReference{owner.Ref(wf)}}, Spec: minik8s.WorkflowRunSpec{Workflow: wf.Name}}
		if _, err := w.client.Create(ctx, r, client.WriteOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
			return err
		}
		status.LastRun = r.Name
	}
	status.ObservedGeneration = wf.Generation
	apimeta.SetStatusCondition(&status.Conditions, ready)
	if apiequality.Semantic.DeepEqual(status, wf.Status) {
		return nil
	}
	next := wf.DeepCopy()
	next.Status = status
	_, err := w.client.Update(ctx, next, client.WriteOptions{Subresource: api.StatusSubresource})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// advance begins a run that is not under way, ends one that has been cancelled, and removes one whose time is over.
func (w *Controller) advance(ctx context.Context, key loop.Key) error {
	r, ok := w.runs.Get(key.Namespace, key.Name)
	if !ok || r.DeletionTimestamp != nil {
		return nil
	}
	w.mu.Lock()
	x := w.active[r.UID]
	if r.Status.Ended() {
		delete(w.active, r.UID)
		w.mu.Unlock()
		return w.expire(ctx, key, r)
	}
	if x != nil {
		w.mu.Unlock()
		if r.Spec.Cancel {
			x.stop(errCancelled)
		}
		return nil
	}
	past := w.past[r.UID]
	delete(w.past, r.UID)
	x = newRun(w, r, past)
	of, stop := context.WithCancelCause(ctx)
	x.stop = stop
	if r.Spec.Cancel {
		stop(errCancelled)
	}
	w.active[r.UID] = x
	w.mu.Unlock()
	if now, ok := w.runs.Get(key.Namespace, key.Name); !ok || now.UID != r.UID {
		w.end(r) // it went before it was active
	}
	w.tasks.Go(func(context.Context) error {
		defer stop(nil)
		if !x.guarded(ctx, of) { // it has come to no end here
			w.mu.Lock()
			if w.active[r.UID] == x {
				delete(w.active, r.UID)
			}
			w.mu.Unlock()
			w.running.AddAfter(key, time.Second)
		}
		return nil
	})
	return nil
}

// keptByDefault is how long a run is kept that has not begun with a workflow, in seconds.
const keptByDefault = 3600

// expire removes a run whose time is over.
func (w *Controller) expire(ctx context.Context, key loop.Key, r *minik8s.WorkflowRun) error {
	seconds, end := r.Status.RunSeconds, r.CreationTimestamp.Time
	if seconds == 0 {
		seconds = keptByDefault
	}
	if r.Status.EndTime != nil {
		end = r.Status.EndTime.Time
	}
	if left := end.Add(time.Duration(seconds) * time.Second).Sub(clock.Now()); left > 0 {
		w.running.AddAfter(key, left)
		return nil
	}
	background := metav1.DeletePropagationBackground
	_, err := w.client.Delete(ctx, client.KeyOf(r), &metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(r.UID)), PropagationPolicy: &background})
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil
	}
	return err
}
