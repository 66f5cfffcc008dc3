package job

import (
	"context"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"minik8s/internal/client"
)

// lifetime is how long until a finished job is deleted; ok is false if it stays.
func lifetime(job *batchv1.Job, now time.Time) (left time.Duration, ok bool) {
	end := finished(job)
	if end == nil || job.Spec.TTLSecondsAfterFinished == nil || job.DeletionTimestamp != nil {
		return 0, false
	}
	return end.LastTransitionTime.Add(time.Duration(*job.Spec.TTLSecondsAfterFinished) * time.Second).Sub(now), true
}

// expire deletes a job whose TTL has passed, after its pods.
func (j *Controller) expire(ctx context.Context, job *batchv1.Job) (deleted bool, err error) {
	left, ok := lifetime(job, j.now())
	if !ok {
		return false, nil
	}
	if left > 0 {
		j.loop.AddAfter(keyOf(job), left)
		return false, nil
	}
	fresh, err := client.Get[*batchv1.Job](ctx, j.client, client.KeyOf(job))
	if apierrors.IsNotFound(err) {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	if left, ok := lifetime(fresh, j.now()); !ok || left > 0 || fresh.UID != job.UID {
		return false, nil // the TTL was extended meanwhile
	}
	foreground := metav1.DeletePropagationForeground
	_, err = j.client.Delete(ctx, client.KeyOf(job), &metav1.DeleteOptions{PropagationPolicy: &foreground,
		Preconditions: metav1.NewUIDPreconditions(string(job.UID))})
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return true, nil
	}
	return err == nil, err
}
