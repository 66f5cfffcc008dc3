package daemonset

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"maps"
	"reflect"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"

	"minik8s/internal/client"
	"minik8s/internal/controller/owner"
	"minik8s/internal/controller/pods"
)

// snapshot is the template as the patch that kubectl rollout undo sends: it puts the template back whole.
func snapshot(ds *appsv1.DaemonSet) ([]byte, error) {
	raw, err := json.Marshal(ds.Spec.Template)
	if err != nil {
		return nil, err
	}
	var template map[string]any
	if err := json.Unmarshal(raw, &template); err != nil {
		return nil, err
	}
	template["$patch"] = "replace"
	return json.Marshal(map[string]any{"spec": map[string]any{"template": template}})
}

func sameJSON(a, b []byte) bool {
	if bytes.Equal(a, b) {
		return true
	}
	var x, y any
	return json.Unmarshal(a, &x) == nil && json.Unmarshal(b, &y) == nil && reflect.DeepEqual(x, y)
}

// revisionPlan is what to do about the history.
type revisionPlan struct {
	current *appsv1.ControllerRevision // nil: make one, of this number
	number  int64
	data    []byte
	remove  []*appsv1.ControllerRevision
}

// history finds the revision of the current template and those that are not kept. used says which
// revisions pods still have.
func history(ds *appsv1.DaemonSet, revisions []*appsv1.ControllerRevision, used func(hash string) bool) (revisionPlan, error) {
	data, err := snapshot(ds)
	if err != nil {
		return revisionPlan{}, err
	}
	p := revisionPlan{data: data}
	var old []*appsv1.ControllerRevision
	for _, r := range slices.SortedFunc(slices.Values(revisions), func(a, b *appsv1.ControllerRevision) int { return -cmp.Compare(a.Revision, b.Revision) }) {
		if p.current == nil && sameJSON(r.Data.Raw, data) {
			p.current = r
			continue
		}
		p.number = max(p.number, r.Revision)
		old = append(old, r)
	}
	p.number++
	limit := 10
	if l := ds.Spec.RevisionHistoryLimit; l != nil {
		limit = int(*l)
	}
	slices.Reverse(old) // the oldest first
	idle := slices.DeleteFunc(old, func(r *appsv1.ControllerRevision) bool {
		return used(r.Labels[appsv1.DefaultDaemonSetUniqueLabelKey])
	})
	if over := len(idle) - limit; over > 0 {
		p.remove = idle[:over]
	}
	return p, nil
}

// revise brings the history up to date and returns the hash that pods of the current template carry.
func (d *Controller) revise(ctx context.Context, ds *appsv1.DaemonSet, on []*corev1.Pod) (string, error) {
	selector, err := metav1.LabelSelectorAsSelector(ds.Spec.Selector)
	if err != nil {
		return "", err
	}
	if selector.Empty() {
		selector = labels.Nothing()
	}
	revisions, err := owner.Claim(ctx, d.client, ds, selector, d.revisionsOf.Candidates(ds))
	if err != nil {
		return "", err
	}
	p, err := history(ds, revisions, func(hash string) bool {
		return slices.ContainsFunc(on, func(pod *corev1.Pod) bool { return pod.Labels[appsv1.DefaultDaemonSetUniqueLabelKey] == hash })
	})
	if err != nil || ds.DeletionTimestamp != nil {
		return hashOf(p.current), err
	}
	for _, r := range p.remove {
		_, err := d.client.Delete(ctx, client.KeyOf(r), &metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(r.UID))})
		if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
			return "", err
		}
	}
	if p.current == nil {
		return d.newRevision(ctx, ds, p)
	}
	if p.current.Revision < p.number { // a rollback to this revision
		upd := p.current.DeepCopy()
		upd.Revision = p.number
		if _, err := d.client.Update(ctx, upd, client.WriteOptions{}); err != nil {
			return "", err
		}
	}
	return hashOf(p.current), nil
}

func hashOf(r *appsv1.ControllerRevision) string {
	if r == nil {
		return ""
	}
	return r.Labels[appsv1.DefaultDaemonSetUniqueLabelKey]
}

// newRevision stores the current template. If the name is taken, it is either ours, not seen yet, or another template
// has the same hash. Then the hash is computed again with a higher collision count.
func (d *Controller) newRevision(ctx context.Context, ds *appsv1.DaemonSet, p revisionPlan) (string, error) {
	hash := pods.TemplateHash(&ds.Spec.Template, ds.Status.CollisionCount)
	set := maps.Clone(ds.Spec.Template.Labels)
	if set == nil {
		set = map[string]string{}
	}
	set[appsv1.DefaultDaemonSetUniqueLabelKey] = hash
	r := &appsv1.ControllerRevision{
		ObjectMeta: metav1.ObjectMeta{Name: ds.Name + "-" + hash, Namespace: ds.Namespace, Labels: set,
			Annotations: maps.Clone(ds.Annotations), OwnerReferences: []metav1.OwnerReference{owner.Ref(ds)}},
		Data: runtime.RawExtension{Raw: p.data}, Revision: p.number,
	}
	_, err := d.client.Create(ctx, r, client.WriteOptions{})
	if !apierrors.IsAlreadyExists(err) {
		return hash, err
	}
	there, getErr := client.Get[*appsv1.ControllerRevision](ctx, d.client, client.KeyOf(r))
	if getErr != nil {
		return "", getErr
	}
	if metav1.IsControlledBy(there, ds) && sameJSON(there.Data.Raw, p.data) {
		return hash, nil
	}
	n := int32(1)
	if c := ds.Status.CollisionCount; c != nil {
		n = *c + 1
	}
	upd := ds.DeepCopy()
	upd.Status.CollisionCount = &n
	if _, updErr := d.client.Update(ctx, upd, client.WriteOptions{Subresource: "status"}); updErr != nil {
		return "", updErr
	}
	return "", err
}
