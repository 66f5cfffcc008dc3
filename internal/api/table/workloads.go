package table

import (
	"fmt"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/duration"
)

// workloadColumns returns a workload's columns: name, its own columns, age, and in wide output those of its template.
func workloadColumns(own ...metav1.TableColumnDefinition) []metav1.TableColumnDefinition {
	out := []metav1.TableColumnDefinition{
		{Name: "Name", Type: "string", Format: "name", Description: "Name must be unique within a namespace."},
	}
	out = append(out, own...)
	return append(out,
		metav1.TableColumnDefinition{Name: "Age", Type: "string", Description: "The time since the object was created."},
		metav1.TableColumnDefinition{Name: "Containers", Type: "string", Priority: 1, Description: "Names of each container in the template."},
		metav1.TableColumnDefinition{Name: "Images", Type: "string", Priority: 1, Description: "Images referenced by each container in the template."},
		metav1.TableColumnDefinition{Name: "Selector", Type: "string", Priority: 1, Description: "What selects the pods."})
}

// templateCells returns the cells for the last three columns.
func templateCells(t *corev1.PodTemplateSpec, s *metav1.LabelSelector) []any {
	return append(containerCells(t), metav1.FormatLabelSelector(s))
}

// containerCells returns the names and images of a template's containers.
func containerCells(t *corev1.PodTemplateSpec) []any {
	var names, images []string
	for i := range t.Spec.Containers {
		names = append(names, t.Spec.Containers[i].Name)
		images = append(images, t.Spec.Containers[i].Image)
	}
	return []any{strings.Join(names, ","), strings.Join(images, ",")}
}

func number(name, description string) metav1.TableColumnDefinition {
	return metav1.TableColumnDefinition{Name: name, Type: "integer", Description: description}
}

func words(name, description string) metav1.TableColumnDefinition {
	return metav1.TableColumnDefinition{Name: name, Type: "string", Description: description}
}

func value(n *int32) int64 {
	if n == nil {
		return 0
	}
	return int64(*n)
}

var podTemplateColumns = []metav1.TableColumnDefinition{
	{Name: "Name", Type: "string", Format: "name", Description: "Name must be unique within a namespace."},
	words("Containers", "Names of each container in the template."),
	words("Images", "Images referenced by each container in the template."),
	words("Pod Labels", "The labels of the pods that are made from the template."),
}

func podTemplateRow(t *corev1.PodTemplate, _ time.Time) []any {
	return append(append([]any{t.Name}, containerCells(&t.Template)...), labels.FormatLabels(t.Template.Labels))
}

var replicaSetColumns = workloadColumns(
	number("Desired", "How many pods are wanted."),
	number("Current", "How many pods there are."),
	number("Ready", "How many pods are ready."))

func replicaSetRow(rs *appsv1.ReplicaSet, now time.Time) []any {
	return append([]any{rs.Name, value(rs.Spec.Replicas), int64(rs.Status.Replicas), int64(rs.Status.ReadyReplicas),
		since(rs.CreationTimestamp.Time, now)}, templateCells(&rs.Spec.Template, rs.Spec.Selector)...)
}

func replicationControllerRow(rc *corev1.ReplicationController, now time.Time) []any {
	t := rc.Spec.Template
	if t == nil {
		t = &corev1.PodTemplateSpec{}
	}
	return append([]any{rc.Name, value(rc.Spec.Replicas), int64(rc.Status.Replicas), int64(rc.Status.ReadyReplicas),
		since(rc.CreationTimestamp.Time, now)}, append(containerCells(t), labels.FormatLabels(rc.Spec.Selector))...)
}

var deploymentColumns = workloadColumns(
	words("Ready", "Number of the pod with ready state"),
	words("Up-to-date", "How many pods have the newest template."),
	words("Available", "How many pods have been ready for long enough."))

func deploymentRow(d *appsv1.Deployment, now time.Time) []any {
	return append([]any{d.Name, fmt.Sprintf("%d/%d", d.Status.ReadyReplicas, value(d.Spec.Replicas)), int64(d.Status.UpdatedReplicas),
		int64(d.Status.AvailableReplicas), since(d.CreationTimestamp.Time, now)}, templateCells(&d.Spec.Template, d.Spec.Selector)...)
}

var daemonSetColumns = workloadColumns(
	number("Desired", "How many nodes should run the pod."),
	number("Current", "How many of them have it."),
	number("Ready", "On how many it is ready."),
	number("Up-to-date", "On how many it has the newest template."),
	number("Available", "On how many it has been ready for long enough."),
	words("Node Selector", "Which nodes are chosen."))

func daemonSetRow(ds *appsv1.DaemonSet, now time.Time) []any {
	s := &ds.Status
	return append([]any{ds.Name, int64(s.DesiredNumberScheduled), int64(s.CurrentNumberScheduled), int64(s.NumberReady),
		int64(s.UpdatedNumberScheduled), int64(s.NumberAvailable),
		metav1.FormatLabelSelector(&metav1.LabelSelector{MatchLabels: ds.Spec.Template.Spec.NodeSelector}),
		since(ds.CreationTimestamp.Time, now)}, templateCells(&ds.Spec.Template, ds.Spec.Selector)...)
}

var jobColumns = workloadColumns(
	words("Status", "How the job stands."),
	words("Completions", "How many pods have succeeded, of how many."),
	words("Duration", "How long the job has run."))

func jobRow(job *batchv1.Job, now time.Time) []any {
	completions := fmt.Sprintf("%d/1 of %d", job.Status.Succeeded, value(job.Spec.Parallelism))
	switch {
	case job.Spec.Completions != nil:
		completions = fmt.Sprintf("%d/%d", job.Status.Succeeded, *job.Spec.Completions)
	case value(job.Spec.Parallelism) <= 1:
		completions = fmt.Sprintf("%d/1", job.Status.Succeeded)
	}
	took := ""
	switch start, end := job.Status.StartTime, job.Status.CompletionTime; {
	case start == nil:
	case end == nil:
		took = duration.HumanDuration(now.Sub(start.Time))
	default:
		took = duration.HumanDuration(end.Sub(start.Time))
	}
	return append([]any{job.Name, jobStatus(job), completions, took, since(job.CreationTimestamp.Time, now)},
		templateCells(&job.Spec.Template, job.Spec.Selector)...)
}

func jobStatus(job *batchv1.Job) string {
	has := func(t batchv1.JobConditionType) bool {
		for _, c := range job.Status.Conditions {
			if c.Type == t && c.Status == corev1.ConditionTrue {
				return true
			}
		}
		return false
	}
	switch {
	case has(batchv1.JobComplete):
		return "Complete"
	case has(batchv1.JobFailed):
		return "Failed"
	case job.DeletionTimestamp != nil:
		return "Terminating"
	case has(batchv1.JobSuspended):
		return "Suspended"
	case has(batchv1.JobFailureTarget):
		return "FailureTarget"
	case has(batchv1.JobSuccessCriteriaMet):
		return "SuccessCriteriaMet"
	}
	return "Running"
}

var revisionColumns = []metav1.TableColumnDefinition{
	{Name: "Name", Type: "string", Format: "name", Description: "Name must be unique within a namespace."},
	words("Controller", "Controller of the object"),
	number("Revision", "The number of the revision."),
	words("Age", "The time since the object was created."),
}

func revisionRow(r *appsv1.ControllerRevision, now time.Time) []any {
	controller := none
	if ref := metav1.GetControllerOfNoCopy(r); ref != nil {
		group, _, _ := strings.Cut(ref.APIVersion, "/")
		controller = strings.ToLower(ref.Kind) + "." + group + "/" + ref.Name
	}
	return []any{r.Name, controller, r.Revision, since(r.CreationTimestamp.Time, now)}
}

func replicaSetColumnsExtended() []metav1.TableColumnDefinition {
	return texts("Name", "UID", "Status", "Replicas", "Cpu", "Memory", "Last Sync Time", "Error")
}

func replicaSetColumnsCompact() []metav1.TableColumnDefinition {
	return texts("NAME", "UID", "DESIRED", "CURRENT")
}

// replicaSetRowExtended shows the requests of one pod as Cpu and Memory, since the ReplicaSet object has no more than
// that.
func replicaSetRowExtended(rs *appsv1.ReplicaSet, _ time.Time) []any {
	pod := &corev1.Pod{Spec: rs.Spec.Template.Spec}
	sync, problem := rs.CreationTimestamp.Time, ""
	for _, c := range rs.Status.Conditions {
		if c.LastTransitionTime.After(sync) {
			sync = c.LastTransitionTime.Time
		}
		if c.Type == appsv1.ReplicaSetReplicaFailure && c.Status == corev1.ConditionTrue {
			problem = c.Message
		}
	}
	return []any{
		rs.Namespace + "/" + rs.Name, string(rs.UID), replicaSetStateExtended(rs, problem),
		fmt.Sprintf("%d/%d", rs.Status.ReadyReplicas, value(rs.Spec.Replicas)),
		requested(pod, corev1.ResourceCPU), requested(pod, corev1.ResourceMemory), rfc3339(sync), or(problem, "-"),
	}
}

// replicaSetStateExtended returns Scaling, Ready, Error, Deleted or Unknown.
func replicaSetStateExtended(rs *appsv1.ReplicaSet, problem string) string {
	switch {
	case rs.DeletionTimestamp != nil:
		return "Deleted"
	case problem != "":
		return "Error"
	case rs.Status.ObservedGeneration == 0:
		return "Unknown"
	case int64(rs.Status.Replicas) == value(rs.Spec.Replicas) && rs.Status.ReadyReplicas == rs.Status.Replicas:
		return "Ready"
	}
	return "Scaling"
}

func replicaSetRowCompact(rs *appsv1.ReplicaSet, _ time.Time) []any {
	return []any{rs.Name, string(rs.UID), fmt.Sprint(value(rs.Spec.Replicas)), fmt.Sprint(rs.Status.Replicas)}
}
