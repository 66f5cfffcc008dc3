package pods

import (
	"context"
	"maps"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"minik8s/internal/api"
	"minik8s/internal/client"
	"minik8s/internal/controller/owner"
	"minik8s/internal/events"
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

// Create stores a pod for its owner and says so.
func (c Control) Create(ctx context.Context, pod *corev1.Pod, of api.Object) error {
	made, err := c.Client.Create(ctx, pod, client.WriteOptions{})
	if err != nil {
		// A namespace that is ending refuses everything; nobody needs to be told.
		if !apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) && ctx.Err() == nil {
			c.Record.Event(of, corev1.EventTypeWarning, "FailedCreate", "Error creating: %v", err)
		}
		return err
	}
	c.Record.Event(of, corev1.EventTypeNormal, "SuccessfulCreate", "Created pod: %s", made.GetName())
	return nil
}

// Delete starts the deletion of an owner's pod and says so. A pod that has gone already is no error.
func (c Control) Delete(ctx context.Context, pod *corev1.Pod, of api.Object) error {
	_, err := c.Client.Delete(ctx, client.KeyOf(pod), &metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(pod.UID))})
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) { // gone, or another pod of that name
		return nil
	}
	if err != nil {
		if ctx.Err() == nil {
			c.Record.Event(of, corev1.EventTypeWarning, "FailedDelete", "Error deleting: %v", err)
		}
		return err
	}
	c.Record.Event(of, corev1.EventTypeNormal, "SuccessfulDelete", "Deleted pod: %s", pod.Name)
	return nil
}

// firstBatch is how many writes are tried before more are believed to work.
const firstBatch = 4

// SlowStart calls do for 0 to n-1, side by side in batches that double as long as none fails. It returns
// how many succeeded, how many were never tried, and the first error.
func SlowStart(n int, do func(i int) error) (done, untried int, err error) {
	next := 0
	for batch := firstBatch; next < n; batch *= 2 {
		size := min(batch, n-next)
		ok, err := together(size, func(i int) error { return do(next + i) })
		next += size
		done += ok
		if err != nil {
			return done, n - next, err
		}
	}
	return done, 0, nil
}

// All calls do for 0 to n-1 side by side and returns the first error.
func All(n int, do func(i int) error) error {
	_, err := together(n, do)
	return err
}

// abreast bounds the writes that are under way at once.
const abreast = 64

func together(n int, do func(i int) error) (ok int, first error) {
	var mu sync.Mutex
	var wg sync.WaitGroup
	room := make(chan struct{}, abreast)
	for i := range n {
		room <- struct{}{}
		wg.Add(1)
		go func() {
			defer func() { <-room; wg.Done() }()
			err := do(i)
			mu.Lock()
			defer mu.Unlock()
			if err == nil {
				ok++
			} else if first == nil {
				first = err
			}
		}()
	}
	wg.Wait()
	return ok, first
}
