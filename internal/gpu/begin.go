package gpu

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"

	"minik8s/internal/api"
	"minik8s/internal/api/minik8s"
	"minik8s/internal/client"
	"minik8s/internal/clock"
	"minik8s/internal/controller/loop"
	"minik8s/internal/gpu/plan"
	"minik8s/internal/slurm"
	"minik8s/internal/slurm/batch"
)

// startLimit is how long a step waits for a job to be compiled and submitted; after that its marks say how it went.
const startLimit = 10 * time.Second

// startAgain is how long a start that is under way on the login node is left alone.
const startAgain = 30 * time.Second

// waits is why a job is not submitted yet.
type waits struct {
	reason, message string
	circle          []string // the jobs that wait for each other
}

func (w *waits) Error() string { return w.message }

// begin has a job submitted, or writes into its status what it waits for.
func (g *Controller) begin(ctx context.Context, obj *minik8s.GpuJob) error {
	s := &obj.Status
	g.mu.Lock()
	asked := g.begun[obj.UID]
	g.mu.Unlock()
	if time.Since(asked) < startAgain {
		return nil // its marks will say
	}
	err := g.submit(ctx, obj)
	var w *waits
	var p *Problem
	switch {
	case err == nil:
		return nil
	case errors.Is(err, slurm.ErrUnderWay):
		s.State = plan.Submitting
		if len(obj.Spec.CompileScripts) > 0 && obj.Spec.CompileOn != minik8s.CompileOnJob {
			s.State = plan.Compiling
		}
		g.mu.Lock()
		g.begun[obj.UID] = time.Now()
		g.mu.Unlock()
		g.loop.AddAfter(keyOf(obj), startAgain+time.Second) // in case the script is lost with the login node
		return nil
	case errors.As(err, &w) && w.reason == plan.ReasonNeverSatisfied:
		g.tell(obj.UID, func(n *plan.News) {
			n.Marks = append(n.Marks, batch.Mark{UID: string(obj.UID), Kind: plan.Unsatisfied, Text: w.message})
		})
		return nil
	case errors.As(err, &w):
		if old := apimeta.FindStatusCondition(s.Conditions, minik8s.GpuJobSubmitted); w.circle != nil && (old == nil || old.Message != w.message) {
			for _, name := range w.circle { // each says so
				g.loop.Add(loop.Key{Namespace: obj.Namespace, Name: name})
			}
		}
		plan.Set(s, minik8s.GpuJobSubmitted, false, w.reason, w.message, clock.Now())
		return nil
	case apierrors.IsConflict(err), ctx.Err() != nil:
		return err
	}
	reason, message := "SubmissionFailed", err.Error()
	if p = problem(err); p.Reason != minik8s.SlurmUnreachable || errors.As(err, &p) {
		reason, message = p.Reason, p.Message
	}
	plan.Set(s, minik8s.GpuJobSubmitted, false, reason, message, clock.Now())
	g.loop.AddAfter(keyOf(obj), retryAfter)
	return nil
}

func (g *Controller) submit(ctx context.Context, obj *minik8s.GpuJob) error {
	s := &obj.Status
	if s.Cluster == "" {
		name, err := g.links.choose(ctx, obj)
		if err != nil {
			return err
		}
		s.Cluster = name
	}
	if err := g.circle(obj); err != nil {
		return err
	}
	cluster, spec, err := g.links.For(ctx, placeOf(obj))
	if err != nil {
		g.reportOf(ctx, placeOf(obj), err, nil)
		return err
	}
	layout, err := cluster.Layout(ctx, obj.Name, string(obj.UID))
	g.reportOf(ctx, placeOf(obj), err, nil)
	if err != nil {
		return err
	}
	if s.Folder == "" { // before anything is there, so that it is found again
		was := obj.DeepCopy()
		s.Folder = layout.Folder()
		if err := g.write(ctx, was, obj); err != nil {
			return err
		}
	} else if l, ok := plan.Layout(obj); ok {
		layout = l
	}
	if err := g.sources(obj); err != nil {
		return err
	}
	given := plan.Given{Layout: layout}
	if given.After, err = g.dependencies(obj); err != nil {
		return err
	}
	if given.Env, err = g.env(ctx, obj); err != nil {
		return err
	}
	files, err := g.files(ctx, obj)
	if err != nil {
		return err
	}
	limit, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	m, err := cluster.Start(limit, plan.Job(obj, &spec.Spec, given), obj.Spec.WorkDir, files)
	if err != nil {
		return err
	}
	g.tell(obj.UID, func(n *plan.News) { n.Marks = append(n.Marks, m) })
	return nil
}

// sources waits for an upload.
func (g *Controller) sources(obj *minik8s.GpuJob) error {
	src := &obj.Spec.Sources
	if src.Folder == "" && src.File == "" || apimeta.IsStatusConditionTrue(obj.Status.Conditions, minik8s.GpuJobSourcesReady) {
		return nil
	}
	obj.Status.State = plan.Uploading
	what := src.Folder
	if what == "" {
		what = src.File
	}
	return &waits{reason: plan.ReasonNoSources, message: fmt.Sprintf("%s is on the machine of whoever applied the job: `minik8sd ctl apply` uploads it, or `minik8sd ctl gpu push %s FOLDER`", what, obj.Name)}
}

// dependencies are those that Slurm has to wait for.
func (g *Controller) dependencies(obj *minik8s.GpuJob) ([]batch.Dependency, error) {
	var out []batch.Dependency
	for _, d := range obj.Spec.DependsOn {
		when := d.When
		if when == "" {
			when = "afterok"
		}
		first, ok := g.jobs.Get(obj.Namespace, d.Name)
		if !ok {
			return nil, &waits{reason: "WaitingForDependency", message: fmt.Sprintf("there is no GpuJob %s yet", d.Name)}
		}
		if first.Status.Cluster != "" && first.Status.Cluster != obj.Status.Cluster {
			return nil, &waits{reason: "WaitingForDependency", message: fmt.Sprintf("GpuJob %s runs on another cluster, %s", d.Name, first.Status.Cluster)}
		}
		ended, well := plan.Ended(&first.Status), apimeta.IsStatusConditionTrue(first.Status.Conditions, minik8s.GpuJobComplete)
		switch {
		case ended && (when == "afterany" || when == "after" || well == (when == "afterok")):
		case ended:
			return nil, &waits{reason: plan.ReasonNeverSatisfied, message: fmt.Sprintf("GpuJob %s ended as %s, and this one runs %s", d.Name, first.Status.State, when)}
		case first.Status.JobID == "":
			return nil, &waits{reason: "WaitingForDependency", message: fmt.Sprintf("GpuJob %s is not submitted yet", d.Name)}
		default:
			out = append(out, batch.Dependency{When: when, ID: first.Status.JobID})
		}
	}
	return out, nil
}

// circle refuses a job that waits for itself, by way of others. They may have been made in any order, so that none of them could be
// refused when it was made.
func (g *Controller) circle(obj *minik8s.GpuJob) error {
	way := plan.Circle(obj.Name, func(name string) []string {
		j, ok := g.jobs.Get(obj.Namespace, name)
		if !ok || j.Status.JobID != "" || plan.Ended(&j.Status) {
			return nil
		}
		var out []string
		for _, d := range j.Spec.DependsOn {
			out = append(out, d.Name)
		}
		return out
	})
	if way == nil {
		return nil
	}
	return &waits{reason: "DependencyCycle", circle: way, message: fmt.Sprintf("these GpuJobs wait for each other (dependsOn), so none of them can start: %s; delete one of them",
		strings.Join(way, " -> "))}
}

// env reads the variables of a job.
func (g *Controller) env(ctx context.Context, obj *minik8s.GpuJob) ([]batch.Var, error) {
	var out []batch.Var
	for _, v := range obj.Spec.Env {
		value, from := v.Value, v.ValueFrom
		switch {
		case from == nil:
		case from.ConfigMapKeyRef != nil:
			ref := from.ConfigMapKeyRef
			cm, err := client.Get[*corev1.ConfigMap](ctx, g.client, client.Key{Kind: api.ConfigMaps, Namespace: obj.Namespace, Name: ref.Name})
			text, ok := "", false
			if err == nil {
				text, ok = cm.Data[ref.Key]
			}
			if skip, err := refers(err, ok, "ConfigMap", ref.Name, ref.Key, ref.Optional); skip || err != nil {
				if err != nil {
					return nil, err
				}
				continue
			}
			value = text
		case from.SecretKeyRef != nil:
			ref := from.SecretKeyRef
			s, err := client.Get[*corev1.Secret](ctx, g.client, client.Key{Kind: api.Secrets, Namespace: obj.Namespace, Name: ref.Name})
			var text []byte
			ok := false
			if err == nil {
				text, ok = s.Data[ref.Key]
			}
			if skip, err := refers(err, ok, "Secret", ref.Name, ref.Key, ref.Optional); skip || err != nil {
				if err != nil {
					return nil, err
				}
				continue
			}
			value = string(text)
		}
		out = append(out, batch.Var{Name: v.Name, Value: value})
	}
	return out, nil
}

// refers judges a reference to a key: skip it, or wait for it.
func refers(err error, found bool, kind, name, key string, optional *bool) (skip bool, _ error) {
	if err != nil && !apierrors.IsNotFound(err) {
		return false, err
	}
	switch {
	case err == nil && found:
		return false, nil
	case optional != nil && *optional:
		return true, nil
	case err != nil:
		return false, &Problem{Reason: "CreateConfigError", Message: fmt.Sprintf("there is no %s %s", kind, name)}
	}
	return false, &Problem{Reason: "CreateConfigError", Message: fmt.Sprintf("%s %s has no key %s", kind, name, key)}
}

// files are those that come from the API.
func (g *Controller) files(ctx context.Context, obj *minik8s.GpuJob) ([]slurm.File, error) {
	var out []slurm.File
	if name := obj.Spec.Sources.ConfigMap; name != "" {
		cm, err := client.Get[*corev1.ConfigMap](ctx, g.client, client.Key{Kind: api.ConfigMaps, Namespace: obj.Namespace, Name: name})
		if apierrors.IsNotFound(err) {
			return nil, &Problem{Reason: "SourcesMissing", Message: "there is no ConfigMap " + name}
		}
		if err != nil {
			return nil, err
		}
		for _, k := range slices.Sorted(maps.Keys(cm.Data)) {
			out = append(out, slurm.File{Path: k, Content: []byte(cm.Data[k])})
		}
		for _, k := range slices.Sorted(maps.Keys(cm.BinaryData)) {
			out = append(out, slurm.File{Path: k, Content: cm.BinaryData[k]})
		}
	}
	for _, f := range obj.Spec.Sources.Files {
		out = append(out, slurm.File{Path: f.Path, Content: []byte(f.Content)})
	}
	return out, nil
}
