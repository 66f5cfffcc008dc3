package table

import (
	"fmt"
	"strconv"
	"time"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"minik8s/internal/api/minik8s"
)

var gpuJobColumns = []metav1.TableColumnDefinition{
	{Name: "Name", Type: "string", Format: "name", Description: "Name must be unique within a namespace."},
	{Name: "State", Type: "string", Description: "Slurm's word for how far the job is, or one of those before it."},
	{Name: "JobID", Type: "string", Description: "Slurm's number."},
	{Name: "Reason", Type: "string", Description: "Why it waits, or how it ended."},
	{Name: "Nodes", Type: "string", Description: "Slurm's nodes."},
	{Name: "Age", Type: "string", Description: "The time since the object was created."},
	{Name: "Cluster", Type: "string", Priority: 1, Description: "The SlurmCluster that has the job."},
	{Name: "Exit", Type: "string", Priority: 1, Description: "The exit code, and the signal after a colon if one ended it."},
}

func gpuJobRow(j *minik8s.GpuJob, now time.Time) []any {
	s := &j.Status
	return []any{j.Name, or(s.State, none), or(s.JobID, none), or(gpuJobReason(s), none), or(s.NodeList, none),
		since(j.CreationTimestamp.Time, now), or(or(s.Cluster, j.Spec.Cluster), none), or(ExitText(s), none)}
}

// gpuJobReason is Slurm's reason, or that of the step that is not done yet.
func gpuJobReason(s *minik8s.GpuJobStatus) string {
	if s.Reason != "" {
		return s.Reason
	}
	for _, step := range []string{minik8s.GpuJobSourcesReady, minik8s.GpuJobCompiled, minik8s.GpuJobSubmitted, minik8s.GpuJobResultsReady} {
		if c := apimeta.FindStatusCondition(s.Conditions, step); c != nil && c.Status == metav1.ConditionFalse {
			return c.Reason
		}
	}
	return ""
}

// ExitText is how a GpuJob ended: its exit code, and the signal after a colon if one ended it; empty if it has not.
func ExitText(s *minik8s.GpuJobStatus) string {
	text := ""
	if s.ExitCode != nil {
		text = strconv.Itoa(int(*s.ExitCode))
	}
	if s.Signal != nil && *s.Signal != 0 {
		text = fmt.Sprintf("%s:%d", or(text, "0"), *s.Signal)
	}
	return text
}

// The columns of the two seed systems.
var gpuJobColumnsExtended = []metav1.TableColumnDefinition{
	{Name: "Name", Type: "string", Format: "name", Description: "Namespace and name."},
	{Name: "State", Type: "string", Description: "Slurm's word for how far the job is."},
	{Name: "Last Sync Time", Type: "string", Description: "When something was last heard of the job."},
}

func gpuJobRowExtended(j *minik8s.GpuJob, _ time.Time) []any {
	var last time.Time
	for _, t := range []*metav1.Time{j.Status.SubmitTime, j.Status.StartTime, j.Status.EndTime} {
		if t != nil && t.After(last) {
			last = t.Time
		}
	}
	for _, c := range j.Status.Conditions {
		if c.LastTransitionTime.After(last) {
			last = c.LastTransitionTime.Time
		}
	}
	when := ""
	if !last.IsZero() {
		when = last.Format(time.RFC3339)
	}
	return []any{j.Namespace + "/" + j.Name, or(j.Status.State, "Unknown"), when}
}

var gpuJobColumnsCompact = []metav1.TableColumnDefinition{
	{Name: "NAME", Type: "string", Format: "name", Description: "Name must be unique within a namespace."},
	{Name: "UID", Type: "string", Description: "The UID of the object."},
	{Name: "JOBID", Type: "string", Description: "Slurm's number."},
	{Name: "STATE", Type: "string", Description: "Slurm's word for how far the job is."},
}

func gpuJobRowCompact(j *minik8s.GpuJob, _ time.Time) []any {
	return []any{j.Name, string(j.UID), or(j.Status.JobID, none), or(j.Status.State, "PENDING")}
}

var slurmClusterColumns = []metav1.TableColumnDefinition{
	{Name: "Name", Type: "string", Format: "name", Description: "Name must be unique within a namespace."},
	{Name: "Host", Type: "string", Description: "The login node."},
	{Name: "User", Type: "string", Description: "Who logs in there, if the object says so."},
	{Name: "Connected", Type: "string", Description: "Whether the connection stands."},
	{Name: "Reason", Type: "string", Description: "Why it does not."},
	{Name: "Age", Type: "string", Description: "The time since the object was created."},
}

func slurmClusterRow(c *minik8s.SlurmCluster, now time.Time) []any {
	connected, reason := string(metav1.ConditionUnknown), ""
	if condition := apimeta.FindStatusCondition(c.Status.Conditions, minik8s.SlurmConnected); condition != nil {
		if connected = string(condition.Status); condition.Status != metav1.ConditionTrue {
			reason = condition.Reason
		}
	}
	host := c.Spec.Host
	if c.Spec.Port != 0 && c.Spec.Port != 22 {
		host += ":" + strconv.Itoa(int(c.Spec.Port))
	}
	return []any{c.Name, or(host, none), or(c.Spec.User, none), connected, or(reason, none), since(c.CreationTimestamp.Time, now)}
}
