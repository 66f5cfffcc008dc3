package rollout

import (
	"context"
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"minik8s/internal/api"
	"minik8s/internal/client"
	"minik8s/internal/ctl/brief"
	"minik8s/internal/ctl/exit"
	"minik8s/internal/ctl/session"
)

// The annotations, also used by kubectl, for why a template changed and for the revision of a ReplicaSet.
const (
	changeCause = "kubernetes.io/change-cause"
	revisionOf  = "deployment.kubernetes.io/revision"
)

// revision is one of the templates that a workload has had.
type revision struct {
	number   int64
	cause    string
	template corev1.PodTemplateSpec
}

// revisions returns a workload's templates, the oldest first and the present one last.
func revisions(ctx context.Context, s *session.Session, obj api.Object) ([]revision, error) {
	of := ofDaemonSet
	if api.KindOf(obj) == api.Deployments {
		of = ofDeployment
	}
	out, err := of(ctx, s.API, obj)
	slices.SortFunc(out, func(a, b revision) int { return int(a.number - b.number) })
	return out, err
}

// ofDeployment returns the templates that a Deployment keeps in its ReplicaSets.
func ofDeployment(ctx context.Context, c client.Interface, obj api.Object) ([]revision, error) {
	sets, _, err := client.All[*appsv1.ReplicaSet](ctx, c, api.ReplicaSets, client.ListOptions{Namespace: obj.GetNamespace()})
	var out []revision
	for _, rs := range sets {
		n, err := strconv.ParseInt(rs.Annotations[revisionOf], 10, 64)
		if err != nil || !metav1.IsControlledBy(rs, obj) {
			continue
		}
		r := revision{n, rs.Annotations[changeCause], *rs.Spec.Template.DeepCopy()}
		delete(r.template.Labels, appsv1.DefaultDeploymentUniqueLabelKey)
		out = append(out, r)
	}
	return out, err
}

// ofDaemonSet returns the templates that a DaemonSet keeps in its ControllerRevisions.
func ofDaemonSet(ctx context.Context, c client.Interface, obj api.Object) ([]revision, error) {
	history, _, err := client.All[*appsv1.ControllerRevision](ctx, c, api.ControllerRevisions, client.ListOptions{Namespace: obj.GetNamespace()})
	var out []revision
	for _, h := range history {
		var data struct {
			Spec struct{ Template corev1.PodTemplateSpec }
		}
		if err := json.Unmarshal(h.Data.Raw, &data); err != nil || !metav1.IsControlledBy(h, obj) {
			continue
		}
		out = append(out, revision{h.Revision, h.Annotations[changeCause], data.Spec.Template})
	}
	return out, err
}

// images returns the images of a template, in its order.
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
	return exit.Failf(exit.NotFound, "%s has no revision %d; minik8sd ctl rollout history %s %s%s lists them", brief.RefOf(obj), number,
		api.KindOf(obj).Singular, obj.GetName(), brief.Namespace(obj.GetNamespace()))
}
