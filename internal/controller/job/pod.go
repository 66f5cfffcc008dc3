package job

import (
	"context"
	"encoding/json"
	"slices"
	"strconv"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"minik8s/internal/client"
	"minik8s/internal/controller/pods"
)

// indexVariable is the environment variable that tells a container its index.
const indexVariable = "JOB_COMPLETION_INDEX"

// podFor is a pod of a job.
func podFor(job *batchv1.Job, w want) *corev1.Pod {
	p := pods.FromTemplate(&job.Spec.Template, job)
	p.Finalizers = append(p.Finalizers, batchv1.JobTrackingFinalizer)
	if w.index < 0 {
		return p
	}
	ix := strconv.Itoa(w.index)
	for _, m := range []*map[string]string{&p.Labels, &p.Annotations} {
		if *m == nil {
			*m = map[string]string{}
		}
		(*m)[batchv1.JobCompletionIndexAnnotation] = ix
	}
	if job.Spec.BackoffLimitPerIndex != nil {
		p.Annotations[batchv1.JobIndexFailureCountAnnotation] = strconv.Itoa(w.failures)
	}
	p.GenerateName = job.Name + "-" + ix + "-"
	p.Spec.Hostname = job.Name + "-" + ix
	for _, list := range [][]corev1.Container{p.Spec.InitContainers, p.Spec.Containers} {
		for i := range list {
			if slices.ContainsFunc(list[i].Env, func(e corev1.EnvVar) bool { return e.Name == indexVariable }) {
				continue
			}
			list[i].Env = append(list[i].Env, corev1.EnvVar{Name: indexVariable, ValueFrom: &corev1.EnvVarSource{
				FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.annotations['" + batchv1.JobCompletionIndexAnnotation + "']"}}})
		}
	}
	return p
}

// untrack removes the finalizer from a pod. A pod that is deleted is not an error.
func (j *Controller) untrack(ctx context.Context, p *corev1.Pod) error {
	data, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"uid": p.UID, "$deleteFromPrimitiveList/finalizers": []string{batchv1.JobTrackingFinalizer}}})
	if err != nil {
		return err
	}
	_, err = j.client.Patch(ctx, client.KeyOf(p), client.Patch{Type: types.StrategicMergePatchType, Data: data}, client.WriteOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}
