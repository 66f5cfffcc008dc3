package deployment

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"minik8s/internal/controller/owner"
	"minik8s/internal/controller/pods"
)

// The annotations of Deployments and their ReplicaSets that kubectl rollout reads.
const (
	revisionAnnotation = "deployment.kubernetes.io/revision"
	historyAnnotation  = "deployment.kubernetes.io/revision-history"
	desiredAnnotation  = "deployment.kubernetes.io/desired-replicas"
	maxAnnotation      = "deployment.kubernetes.io/max-replicas"
)

// ownAnnotations are not copied from a Deployment to its ReplicaSets.
var ownAnnotations = []string{corev1.LastAppliedConfigAnnotation, revisionAnnotation, historyAnnotation,
	desiredAnnotation, maxAnnotation, appsv1.DeprecatedRollbackTo}

func value(n *int32) int32 {
	if n == nil {
		return 1
	}
	return *n
}

// sameTemplate compares two templates except for the hash.
func sameTemplate(a, b *corev1.PodTemplateSpec) bool {
	x, y := a.DeepCopy(), b.DeepCopy()
	delete(x.Labels, appsv1.DefaultDeploymentUniqueLabelKey)
	delete(y.Labels, appsv1.DefaultDeploymentUniqueLabelKey)
	return apiequality.Semantic.DeepEqual(x, y)
}

// oldestFirst orders by age, then by name.
func oldestFirst(a, b *appsv1.ReplicaSet) int {
	if c := a.CreationTimestamp.Time.Compare(b.CreationTimestamp.Time); c != 0 {
		return c
	}
	return strings.Compare(a.Name, b.Name)
}

// split finds the set of the current template, nil if there is none, and the others, oldest first.
func split(d *appsv1.Deployment, sets []*appsv1.ReplicaSet) (current *appsv1.ReplicaSet, old []*appsv1.ReplicaSet) {
	for _, rs := range slices.SortedFunc(slices.Values(sets), oldestFirst) {
		if current == nil && sameTemplate(&rs.Spec.Template, &d.Spec.Template) {
			current = rs
			continue
		}
		old = append(old, rs)
	}
	return current, old
}

func revision(rs *appsv1.ReplicaSet) int64 {
	n, err := strconv.ParseInt(rs.Annotations[revisionAnnotation], 10, 64)
	if err != nil {
		return 0
	}
	return n
}

// nextRevision is one more than that of any old set.
func nextRevision(old []*appsv1.ReplicaSet) int64 {
	var most int64
	for _, rs := range old {
		most = max(most, revision(rs))
	}
	return most + 1
}

// newSet is the set for the current template.
func newSet(d *appsv1.Deployment, rev int64) *appsv1.ReplicaSet {
	hash := pods.TemplateHash(&d.Spec.Template, d.Status.CollisionCount)
	template := d.Spec.Template.DeepCopy()
	template.Labels = with(template.Labels, appsv1.DefaultDeploymentUniqueLabelKey, hash)
	selector := d.Spec.Selector.DeepCopy()
	selector.MatchLabels = with(selector.MatchLabels, appsv1.DefaultDeploymentUniqueLabelKey, hash)
	rs := &appsv1.ReplicaSet{
		ObjectMeta: metav1.ObjectMeta{Name: d.Name + "-" + hash, Namespace: d.Namespace,
			Labels: maps.Clone(template.Labels), OwnerReferences: []metav1.OwnerReference{owner.Ref(d)}},
		Spec: appsv1.ReplicaSetSpec{Replicas: new(int32), MinReadySeconds: d.Spec.MinReadySeconds, Selector: selector, Template: *template},
	}
	rs.Annotations = annotations(d, rs, rev)
	return rs
}

func with(m map[string]string, key, value string) map[string]string {
	out := maps.Clone(m)
	if out == nil {
		out = map[string]string{}
	}
	out[key] = value
	return out
}

// annotations are those that the current set should have: the Deployment's, and its revision.
func annotations(d *appsv1.Deployment, rs *appsv1.ReplicaSet, rev int64) map[string]string {
	out := maps.Clone(rs.Annotations)
	if out == nil {
		out = map[string]string{}
	}
	for key, v := range d.Annotations {
		if !slices.Contains(ownAnnotations, key) {
			out[key] = v
		}
	}
	if before := revision(rs); before < rev {
		out[revisionAnnotation] = strconv.FormatInt(rev, 10)
		if before > 0 { // a rollback to it: remember its earlier revision
			history := strconv.FormatInt(before, 10)
			if h := out[historyAnnotation]; h != "" {
				history = h + "," + history
			}
			out[historyAnnotation] = history
		}
	}
	return out
}

// limits are maxSurge and maxUnavailable as numbers of pods: fractions are rounded up for the surge and down for what
// may be unavailable, and if both are 0 one pod may be unavailable.
func limits(d *appsv1.Deployment) (surge, unavailable int32) {
	ru := d.Spec.Strategy.RollingUpdate
	if d.Spec.Strategy.Type != appsv1.RollingUpdateDeploymentStrategyType || ru == nil || value(d.Spec.Replicas) == 0 {
		return 0, 0
	}
	replicas := value(d.Spec.Replicas)
	surge = scaled(ru.MaxSurge, replicas, true)
	unavailable = scaled(ru.MaxUnavailable, replicas, false)
	if surge == 0 && unavailable == 0 {
		unavailable = 1
	}
	return surge, min(unavailable, replicas)
}

func scaled(v *intstr.IntOrString, of int32, up bool) int32 {
	if v == nil {
		return 0
	}
	n, err := intstr.GetScaledValueFromIntOrPercent(v, int(of), up)
	if err != nil {
		return 0
	}
	return int32(max(n, 0))
}

// cleanable are the old sets beyond the history that is kept.
func cleanable(d *appsv1.Deployment, old []*appsv1.ReplicaSet) []*appsv1.ReplicaSet {
	if d.Spec.RevisionHistoryLimit == nil {
		return nil
	}
	alive := slices.DeleteFunc(slices.Clone(old), func(rs *appsv1.ReplicaSet) bool { return rs.DeletionTimestamp != nil })
	over := len(alive) - int(*d.Spec.RevisionHistoryLimit)
	if over <= 0 {
		return nil
	}
	slices.SortStableFunc(alive, func(a, b *appsv1.ReplicaSet) int { return cmp.Compare(revision(a), revision(b)) })
	return slices.DeleteFunc(alive[:over], func(rs *appsv1.ReplicaSet) bool {
		return rs.Status.Replicas != 0 || value(rs.Spec.Replicas) != 0 || rs.Generation > rs.Status.ObservedGeneration
	})
}
