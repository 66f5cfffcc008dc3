package strategy

import (
	"maps"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"minik8s/internal/api"
	"minik8s/internal/api/defaults"
	"minik8s/internal/api/dialect"
	"minik8s/internal/api/validation"
	"minik8s/internal/registry"
	"minik8s/internal/registry/subresource"
)

// templateWarnings returns the warnings about the pods of a template.
func templateWarnings[T api.Object](of func(T) *corev1.PodTemplateSpec) func(api.Object, registry.Lister) []string {
	return warningsAt(field.NewPath("spec", "template"), of)
}

func warningsAt[T api.Object](template *field.Path, of func(T) *corev1.PodTemplateSpec) func(api.Object, registry.Lister) []string {
	return func(obj api.Object, _ registry.Lister) []string {
		_, warnings := validation.NotServed(&of(obj.(T)).Spec, template.Child("spec"))
		return warnings
	}
}

// specChanged compares a part of two objects semantically.
func specChanged[T api.Object](of func(T) any) func(obj, old api.Object) bool {
	return func(obj, old api.Object) bool {
		return !apiequality.Semantic.DeepEqual(of(obj.(T)), of(old.(T)))
	}
}

// selectorText returns a selector in the form of a Scale's status.
func selectorText(s *metav1.LabelSelector) string {
	sel, err := metav1.LabelSelectorAsSelector(s)
	if err != nil {
		return ""
	}
	return sel.String()
}

// scaled returns the row of a kind that has a number of replicas and nothing else below it.
func scaled[T api.Object](of func(T) (replicas **int32, status autoscalingv1.ScaleStatus)) map[string]registry.Subresource {
	return map[string]registry.Subresource{api.ScaleSubresource: subresource.Scale(of)}
}

func podTemplateStrategy() *registry.Strategy {
	return &registry.Strategy{
		Default:     onOne(defaults.PodTemplate),
		Validate:    checkOne(validation.PodTemplate),
		Warnings:    warningsAt(field.NewPath("template"), func(t *corev1.PodTemplate) *corev1.PodTemplateSpec { return &t.Template }),
		SpecChanged: specChanged(func(t *corev1.PodTemplate) any { return t.Template }),
	}
}

func replicaSetStrategy() *registry.Strategy {
	return &registry.Strategy{
		Default:        onOne(defaults.ReplicaSet),
		Validate:       checkOne(validation.ReplicaSet),
		ValidateUpdate: checkStep(validation.ReplicaSetUpdate),
		ValidateStatus: checkStep(validation.ReplicaSetStatusUpdate),
		Warnings:       templateWarnings(func(rs *appsv1.ReplicaSet) *corev1.PodTemplateSpec { return &rs.Spec.Template }),
		CopyStatus:     onStep(func(dst, src *appsv1.ReplicaSet) { dst.Status = src.Status }),
		SpecChanged:    specChanged(func(rs *appsv1.ReplicaSet) any { return rs.Spec }),
		Fields: selectable(map[string]func(*appsv1.ReplicaSet) string{
			"status.replicas": func(rs *appsv1.ReplicaSet) string { return strconv.Itoa(int(rs.Status.Replicas)) },
		}),
		Subresources: scaled(func(rs *appsv1.ReplicaSet) (**int32, autoscalingv1.ScaleStatus) {
			return &rs.Spec.Replicas, autoscalingv1.ScaleStatus{Replicas: rs.Status.Replicas, Selector: selectorText(rs.Spec.Selector)}
		}),
		Dialect: dialect.For(api.ReplicaSets),
	}
}

func replicationControllerStrategy() *registry.Strategy {
	return &registry.Strategy{
		Default:        onOne(defaults.ReplicationController),
		Validate:       checkOne(validation.ReplicationController),
		ValidateStatus: checkStep(validation.ReplicationControllerStatusUpdate),
		Warnings: func(obj api.Object, _ registry.Lister) []string {
			t := obj.(*corev1.ReplicationController).Spec.Template
			if t == nil {
				return nil
			}
			_, warnings := validation.NotServed(&t.Spec, field.NewPath("spec", "template", "spec"))
			return warnings
		},
		CopyStatus:  onStep(func(dst, src *corev1.ReplicationController) { dst.Status = src.Status }),
		SpecChanged: specChanged(func(rc *corev1.ReplicationController) any { return rc.Spec }),
		Fields: selectable(map[string]func(*corev1.ReplicationController) string{
			"status.replicas": func(rc *corev1.ReplicationController) string { return strconv.Itoa(int(rc.Status.Replicas)) },
		}),
		Orphans: true,
		Subresources: scaled(func(rc *corev1.ReplicationController) (**int32, autoscalingv1.ScaleStatus) {
			return &rc.Spec.Replicas, autoscalingv1.ScaleStatus{Replicas: rc.Status.Replicas, Selector: labels.SelectorFromSet(rc.Spec.Selector).String()}
		}),
	}
}

func deploymentStrategy() *registry.Strategy {
	return &registry.Strategy{
		Default:        onOne(defaults.Deployment),
		Validate:       checkOne(validation.Deployment),
		ValidateUpdate: checkStep(validation.DeploymentUpdate),
		ValidateStatus: checkStep(validation.DeploymentStatusUpdate),
		Warnings:       templateWarnings(func(d *appsv1.Deployment) *corev1.PodTemplateSpec { return &d.Spec.Template }),
		CopyStatus:     onStep(func(dst, src *appsv1.Deployment) { dst.Status = src.Status }),
		// As in Kubernetes, a changed annotation (a change-cause) counts too: the controller copies it.
		SpecChanged: func(obj, old api.Object) bool {
			d, before := obj.(*appsv1.Deployment), old.(*appsv1.Deployment)
			return !apiequality.Semantic.DeepEqual(d.Spec, before.Spec) || !maps.Equal(d.Annotations, before.Annotations)
		},
		Subresources: scaled(func(d *appsv1.Deployment) (**int32, autoscalingv1.ScaleStatus) {
			return &d.Spec.Replicas, autoscalingv1.ScaleStatus{Replicas: d.Status.Replicas, Selector: selectorText(d.Spec.Selector)}
		}),
		Dialect: dialect.For(api.Deployments),
	}
}

func daemonSetStrategy() *registry.Strategy {
	return &registry.Strategy{
		Default:        onOne(defaults.DaemonSet),
		Validate:       checkOne(validation.DaemonSet),
		ValidateUpdate: checkStep(validation.DaemonSetUpdate),
		ValidateStatus: checkStep(validation.DaemonSetStatusUpdate),
		Warnings:       templateWarnings(func(ds *appsv1.DaemonSet) *corev1.PodTemplateSpec { return &ds.Spec.Template }),
		CopyStatus:     onStep(func(dst, src *appsv1.DaemonSet) { dst.Status = src.Status }),
		SpecChanged:    specChanged(func(ds *appsv1.DaemonSet) any { return ds.Spec }),
		Dialect:        dialect.For(api.DaemonSets),
	}
}

func controllerRevisionStrategy() *registry.Strategy {
	return &registry.Strategy{
		Validate:       checkOne(validation.ControllerRevision),
		ValidateUpdate: checkStep(validation.ControllerRevisionUpdate),
	}
}

func jobStrategy() *registry.Strategy {
	return &registry.Strategy{
		Default: onOne(func(job *batchv1.Job) {
			ownLabels(job) // before the defaults, which copy the template's labels to the job
			defaults.Job(job)
		}),
		Validate:       checkOne(validation.Job),
		ValidateUpdate: checkStep(validation.JobUpdate),
		ValidateStatus: checkStep(validation.JobStatusUpdate),
		Warnings:       templateWarnings(func(job *batchv1.Job) *corev1.PodTemplateSpec { return &job.Spec.Template }),
		CopyStatus:     onStep(func(dst, src *batchv1.Job) { dst.Status = src.Status }),
		SpecChanged:    specChanged(func(job *batchv1.Job) any { return job.Spec }),
		Fields: selectable(map[string]func(*batchv1.Job) string{
			"status.successful": func(job *batchv1.Job) string { return strconv.Itoa(int(job.Status.Succeeded)) },
		}),
		Orphans: true,
		OrphanWarning: "child pods are preserved by default when jobs are deleted; " +
			"set propagationPolicy=Background to remove them or set propagationPolicy=Orphan to suppress this warning",
		Dialect: dialect.For(api.Jobs),
	}
}

// ownLabels gives a job's pods labels that no other job's have, and the job the matching selector, unless it manages
// its selector itself.
func ownLabels(job *batchv1.Job) {
	if m := job.Spec.ManualSelector; m != nil && *m || job.UID == "" || job.Name == "" {
		return
	}
	own := map[string]string{
		batchv1.ControllerUidLabel: string(job.UID), "controller-uid": string(job.UID),
		batchv1.JobNameLabel: job.Name, "job-name": job.Name,
	}
	all := maps.Clone(job.Spec.Template.Labels)
	if all == nil {
		all = map[string]string{}
	}
	for key, value := range own {
		if all[key] == "" {
			all[key] = value
		}
	}
	job.Spec.Template.Labels = all
	if job.Spec.Selector == nil {
		job.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{batchv1.ControllerUidLabel: string(job.UID)}}
	}
}
