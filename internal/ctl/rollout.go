package ctl

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/urfave/cli/v2"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	"minik8s/internal/api"
	"minik8s/internal/client"
	"minik8s/internal/ctl/brief"
)

// rolling are the kinds whose pods are replaced step by step when their template changes.
var rolling = []*api.Kind{api.Deployments, api.DaemonSets}

// The annotations by which kubectl too restarts pods and notes why a template changed.
const (
	restartedAt = "kubectl.kubernetes.io/restartedAt"
	changeCause = "kubernetes.io/change-cause"
	revisionOf  = "deployment.kubernetes.io/revision"
)

func (p *program) rolloutCommand() *cli.Command {
	sub := func(name, usage string, kinds []*api.Kind, do func(*cli.Context, *session, api.Object) error, flags ...cli.Flag) *cli.Command {
		return &cli.Command{Name: name, Usage: usage, ArgsUsage: "KIND NAME...",
			Flags: append(append(selectFlags(), &cli.BoolFlag{Name: "all", Usage: "all objects of the kind in the namespace"}), flags...),
			Action: func(c *cli.Context) error {
				return p.eachOf(c, kinds, func(s *session, obj api.Object) error { return do(c, s, obj) })
			}}
	}
	only := []*api.Kind{api.Deployments}
	return &cli.Command{
		Name: "rollout", Usage: "watch, undo, hold back or repeat the replacing of a workload's pods",
		Subcommands: []*cli.Command{
			sub("status", "wait until the new pods have taken over", rolling, rolloutStatus,
				&cli.DurationFlag{Name: "timeout", Usage: "how long to wait at most; 0: as long as it takes"},
				&cli.BoolFlag{Name: "no-wait", Usage: "only say how it stands; the exit code is 1 while it goes on"}),
			sub("history", "list the templates that there were", rolling, rolloutHistory,
				&cli.Int64Flag{Name: "revision", Usage: "show the template of `REVISION`"}),
			sub("undo", "go back to an earlier template", rolling, rolloutUndo,
				&cli.Int64Flag{Name: "to-revision", Usage: "to which `REVISION`; 0: the one before"}),
			sub("restart", "replace all pods by new ones of the same template", rolling, rolloutRestart),
			sub("pause", "let changes of the template wait", only, rolloutPause(true, "paused")),
			sub("resume", "carry out the changes that wait", only, rolloutPause(false, "resumed")),
		},
	}
}

func rolloutPause(on bool, done string) func(*cli.Context, *session, api.Object) error {
	return func(c *cli.Context, s *session, obj api.Object) error {
		if obj.(*appsv1.Deployment).Spec.Paused == on {
			s.say("%s is %s already", refOf(obj), done)
			return nil
		}
		if err := s.patchMeta(c, obj, map[string]any{"spec": map[string]any{"paused": on}}); err != nil {
			return err
		}
		s.say("%s %s", refOf(obj), done)
		return nil
	}
}

func rolloutRestart(c *cli.Context, s *session, obj api.Object) error {
	if d, ok := obj.(*appsv1.Deployment); ok && d.Spec.Paused {
		return failf(codeFailed, "%s is paused; resume it first: minik8sd ctl rollout resume deployment %s%s", refOf(obj), d.Name, brief.Namespace(d.Namespace))
	}
	at := map[string]any{restartedAt: s.now().Format(time.RFC3339)}
	change := map[string]any{"spec": map[string]any{"template": map[string]any{"metadata": map[string]any{"annotations": at}}}}
	if err := s.patchMeta(c, obj, change); err != nil {
		return err
	}
	s.say("%s restarted", refOf(obj))
	return nil
}

// revision is one of the templates that a workload has had.
type revision struct {
	number   int64
	cause    string
	template corev1.PodTemplateSpec
}

// revisions are a workload's templates, oldest first; the last one is its own.
func (s *session) revisions(ctx context.Context, obj api.Object) ([]revision, error) {
	var out []revision
	in := client.ListOptions{Namespace: obj.GetNamespace()}
	if api.KindOf(obj) == api.Deployments {
		sets, _, err := client.All[*appsv1.ReplicaSet](ctx, s.api, api.ReplicaSets, in)
		if err != nil {
			return nil, err
		}
		for _, rs := range sets {
			n, err := strconv.ParseInt(rs.Annotations[revisionOf], 10, 64)
			if err != nil || !metav1.IsControlledBy(rs, obj) {
				continue
			}
			r := revision{n, rs.Annotations[changeCause], *rs.Spec.Template.DeepCopy()}
			delete(r.template.Labels, appsv1.DefaultDeploymentUniqueLabelKey)
			out = append(out, r)
		}
	} else {
		history, _, err := client.All[*appsv1.ControllerRevision](ctx, s.api, api.ControllerRevisions, in)
		if err != nil {
			return nil, err
		}
		for _, h := range history {
			var data struct {
				Spec struct{ Template corev1.PodTemplateSpec }
			}
			if err := json.Unmarshal(h.Data.Raw, &data); err != nil || !metav1.IsControlledBy(h, obj) {
				continue
			}
			out = append(out, revision{h.Revision, h.Annotations[changeCause], data.Spec.Template})
		}
	}
	slices.SortFunc(out, func(a, b revision) int { return int(a.number - b.number) })
	return out, nil
}

// images are those of a template, in its order.
func (r *revision) images() string {
	var out []string
	for _, c := range r.template.Spec.Containers {
		out = append(out, c.Image)
	}
	return strings.Join(out, ",")
}

func find(list []revision, number int64) *revision {
	i := slices.IndexFunc(list, func(r revision) bool { return r.number == number })
	if i < 0 {
		return nil
	}
	return &list[i]
}

func noRevision(obj api.Object, number int64) error {
	return failf(codeNotFound, "%s has no revision %d; minik8sd ctl rollout history %s %s%s lists them", refOf(obj), number,
		api.KindOf(obj).Singular, obj.GetName(), brief.Namespace(obj.GetNamespace()))
}

func rolloutHistory(c *cli.Context, s *session, obj api.Object) error {
	list, err := s.revisions(c.Context, obj)
	if err != nil {
		return err
	}
	if n := c.Int64("revision"); n != 0 {
		r := find(list, n)
		if r == nil {
			return noRevision(obj, n)
		}
		data, err := yaml.Marshal(r.template)
		if err != nil {
			return err
		}
		s.say("%s, revision %d:\n%s", refOf(obj), n, strings.TrimRight(string(data), "\n"))
		return nil
	}
	s.say("%s", refOf(obj))
	g := &grid{streams: &s.streams, columns: []metav1.TableColumnDefinition{
		{Name: "Revision", Type: "integer"}, {Name: "Images", Type: "string"}, {Name: "Change-Cause", Type: "string"}}}
	t := &metav1.Table{ColumnDefinitions: g.columns}
	for i := range list {
		cause := list[i].cause
		if cause == "" {
			cause = "<none>"
		}
		t.Rows = append(t.Rows, metav1.TableRow{Cells: []any{list[i].number, list[i].images(), cause}})
	}
	g.print(t)
	return nil
}

func rolloutUndo(c *cli.Context, s *session, obj api.Object) error {
	if d, ok := obj.(*appsv1.Deployment); ok && d.Spec.Paused {
		return failf(codeFailed, "%s is paused; resume it first: minik8sd ctl rollout resume deployment %s%s", refOf(obj), d.Name, brief.Namespace(d.Namespace))
	}
	list, err := s.revisions(c.Context, obj)
	if err != nil {
		return err
	}
	var to *revision
	switch n := c.Int64("to-revision"); {
	case n != 0:
		if to = find(list, n); to == nil {
			return noRevision(obj, n)
		}
	case len(list) < 2:
		return failf(codeNotFound, "%s has no earlier template", refOf(obj))
	default:
		to = &list[len(list)-2]
	}
	if to.number == list[len(list)-1].number {
		s.say("%s is at revision %d already", refOf(obj), to.number)
		return nil
	}
	template, err := replaced(to.template)
	if err != nil {
		return err
	}
	data, err := json.Marshal(map[string]any{"spec": map[string]any{"template": template}})
	if err != nil {
		return err
	}
	_, err = s.api.Patch(c.Context, keyOf(obj), client.Patch{Type: types.StrategicMergePatchType, Data: data}, client.WriteOptions{FieldManager: manager})
	if err != nil {
		return err
	}
	s.say("%s rolled back to revision %d (%s)", refOf(obj), to.number, to.images())
	return nil
}

// replaced is a template as a patch that takes the place of the old one instead of being merged with it.
func replaced(t corev1.PodTemplateSpec) (map[string]any, error) {
	data, err := json.Marshal(t)
	if err != nil {
		return nil, err
	}
	out := map[string]any{}
	if err := json.Unmarshal(data, &out); err != nil {
		return nil, err
	}
	out["$patch"] = "replace"
	return out, nil
}

func rolloutStatus(c *cli.Context, s *session, obj api.Object) error {
	start, said := s.now(), ""
	defer s.endProgress()
	for {
		now, err := s.api.Get(c.Context, keyOf(obj))
		if apierrors.IsNotFound(err) {
			return failf(codeNotFound, "%s was deleted while it was waited for", refOf(obj))
		}
		if err != nil {
			return err
		}
		how, done, err := rolled(now)
		took := s.now().Sub(start).Round(time.Second)
		switch {
		case err != nil:
			return err
		case done:
			s.endProgress()
			s.say("%s is rolled out: %s", refOf(obj), how)
			return nil
		case c.Bool("no-wait"):
			return failf(codeFailed, "%s is rolling out: %s", refOf(obj), how)
		case c.Duration("timeout") > 0 && s.now().Sub(start) > c.Duration("timeout"):
			return failf(codeFailed, "%s is not rolled out after %s (%s); minik8sd ctl why %s %s%s tells more", refOf(obj), took, how,
				api.KindOf(obj).Singular, obj.GetName(), brief.Namespace(obj.GetNamespace()))
		}
		if s.errTTY {
			s.progress("%s: %s (%s)", refOf(obj), how, took)
		} else if how != said {
			s.note("%s: %s", refOf(obj), how)
			said = how
		}
		if !s.sleep(c.Context, s.pause) {
			return c.Context.Err()
		}
	}
}

// rolled says how far a rollout is. The error is that it will not come to its end by itself.
func rolled(obj api.Object) (how string, done bool, err error) {
	var want, updated, available, all int32
	var generation, observed int64
	switch o := obj.(type) {
	case *appsv1.Deployment:
		for _, c := range o.Status.Conditions {
			if c.Type == appsv1.DeploymentProgressing && c.Reason == "ProgressDeadlineExceeded" {
				return "", false, failf(codeFailed, "%s has not moved for longer than its progressDeadlineSeconds; minik8sd ctl why deployment %s%s tells why",
					refOf(o), o.Name, brief.Namespace(o.Namespace))
			}
		}
		if o.Spec.Paused {
			return "", false, failf(codeFailed, "%s is paused; minik8sd ctl rollout resume deployment %s%s lets it go on", refOf(o), o.Name, brief.Namespace(o.Namespace))
		}
		want, updated, available, all = ptr.Deref(o.Spec.Replicas, 1), o.Status.UpdatedReplicas, o.Status.AvailableReplicas, o.Status.Replicas
		generation, observed = o.Generation, o.Status.ObservedGeneration
	case *appsv1.DaemonSet:
		if o.Spec.UpdateStrategy.Type == appsv1.OnDeleteDaemonSetStrategyType {
			return "", false, failf(codeFailed, "%s replaces its pods only when they are deleted (updateStrategy OnDelete)", refOf(o))
		}
		s := o.Status
		want, updated, available, all = s.DesiredNumberScheduled, s.UpdatedNumberScheduled, s.NumberAvailable, s.DesiredNumberScheduled
		generation, observed = o.Generation, s.ObservedGeneration
	}
	if observed < generation {
		return "its controller has yet to see the change", false, nil
	}
	how = fmt.Sprintf("%d of %d pods are new, %d available", updated, want, available)
	if old := all - updated; old > 0 {
		how += fmt.Sprintf(", %d old ones are left", old)
	}
	return how, updated >= want && available >= want && all <= updated, nil
}
