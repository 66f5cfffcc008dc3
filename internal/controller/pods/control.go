package pods

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"minik8s/internal/api"
	"minik8s/internal/client"
	"minik8s/internal/controller/expect"
	"minik8s/internal/controller/loop"
	"minik8s/internal/controller/owner"
	"minik8s/internal/events"
	"minik8s/internal/supervise"
)

// Control makes and deletes pods for owners.
type Control struct {
	Client client.Interface
	Record *events.Recorder
}

// FromTemplate is the pod that an owner's template describes.
func FromTemplate(t *corev1.PodTemplateSpec, of api.Object) *corev1.Pod {
	spec := t.Spec.DeepCopy()
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: of.GetNamespace(), GenerateName: of.GetName() + "-",
			Labels: maps.Clone(t.Labels), Annotations: maps.Clone(t.Annotations), Finalizers: slices.Clone(t.Finalizers),
			OwnerReferences: []metav1.OwnerReference{owner.Ref(of)},
		},
		Spec: *spec,
	}
}

// Create stores a pod for its owner, records an Event on the owner, and returns the pod as stored. The pod's name is
// chosen here and not by the API, so that it is known even if the answer is lost. Errors are the API's.
func (c Control) Create(ctx context.Context, pod *corev1.Pod, of api.Object) (*corev1.Pod, error) {
	pod.Name = api.GenerateName(pod.GenerateName)
	made, err := c.Client.Create(ctx, pod.DeepCopy(), client.WriteOptions{})
	if err != nil {
		// A terminating namespace refuses every pod; no Event is needed.
		if !apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) && ctx.Err() == nil {
			// Without the name, which is different each time, so that repetitions are counted on one Event.
			c.Record.Event(of, corev1.EventTypeWarning, "FailedCreate", "Error creating: %s",
				strings.ReplaceAll(err.Error(), pod.Name, pod.GenerateName))
		}
		return nil, err
	}
	c.Record.Event(of, corev1.EventTypeNormal, "SuccessfulCreate", "Created pod: %s", pod.Name)
	return made.(*corev1.Pod), nil
}

// Delete starts the deletion of an owner's pod and records an Event on the owner. A pod that is deleted already is
// not an error.
func (c Control) Delete(ctx context.Context, pod *corev1.Pod, of api.Object) error {
	_, err := c.Client.Delete(ctx, client.KeyOf(pod), &metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(pod.UID))})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		if !apierrors.IsConflict(err) && ctx.Err() == nil { // a conflict: another pod has that name now
			c.Record.Event(of, corev1.EventTypeWarning, "FailedDelete", "Error deleting: %v", err)
		}
		return err
	}
	c.Record.Event(of, corev1.EventTypeNormal, "SuccessfulDelete", "Deleted pod: %s", pod.Name)
	return nil
}

// CreateAll creates the pods of a round in growing batches, and records the outcome of each in seen.
func (c Control) CreateAll(ctx context.Context, of api.Object, seen *expect.Tracker[*corev1.Pod], list []*corev1.Pod) error {
	key := loop.Key{Namespace: of.GetNamespace(), Name: of.GetName()}
	return slowStart(len(list), func(i int) error {
		made, err := c.Create(ctx, list[i], of)
		if err != nil {
			seen.Failed(key, list[i], err)
			return err
		}
		seen.Wrote(key, made)
		return nil
	})
}

// DeleteAll deletes the pods of a round and records the outcome of each in seen.
func (c Control) DeleteAll(ctx context.Context, of api.Object, seen *expect.Tracker[*corev1.Pod], list []*corev1.Pod) error {
	key := loop.Key{Namespace: of.GetNamespace(), Name: of.GetName()}
	return All(len(list), func(i int) error {
		err := c.Delete(ctx, list[i], of)
		if err != nil {
			seen.Failed(key, list[i], err)
			return err
		}
		seen.Deleted(key, list[i])
		return nil
	})
}

// firstBatch is the size of the first batch of writes.
const firstBatch = 4

// slowStart calls do for 0 to n-1, concurrently in batches that double as long as none fails, as slowStartBatch does
// in Kubernetes (pkg/controller/replicaset/replica_set.go). It returns the first error, and starts no batch after it.
func slowStart(n int, do func(i int) error) error {
	next := 0
	for batch := firstBatch; next < n; batch *= 2 {
		size := min(batch, n-next)
		if err := All(size, func(i int) error { return do(next + i) }); err != nil {
			return err
		}
		next += size
	}
	return nil
}

// abreast bounds the writes that are in progress at the same time.
const abreast = 64

// All calls do for 0 to n-1 concurrently and returns the first error.
func All(n int, do func(i int) error) (first error) {
	var mu sync.Mutex
	var wg sync.WaitGroup
	room := make(chan struct{}, abreast)
	for i := range n {
		room <- struct{}{}
		wg.Add(1)
		go func() {
			defer func() { <-room; wg.Done() }()
			err := supervise.Safe(func() error { return do(i) })
			mu.Lock()
			defer mu.Unlock()
			if first == nil {
				first = err
			}
		}()
	}
	wg.Wait()
	return first
}
