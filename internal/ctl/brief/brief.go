package brief

import (
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"minik8s/internal/api"
)

// Ref returns an object's name for messages: "pod/web".
func Ref(kind *api.Kind, name string) string {
	word := kind.Singular
	if kind.Group != "" {
		word += "." + kind.Group
	}
	return word + "/" + name
}

// RefOf is Ref for an object whose kind is known from its type.
func RefOf(obj api.Object) string {
	kind := api.KindOf(obj)
	if kind == nil {
		return obj.GetName()
	}
	return Ref(kind, obj.GetName())
}

// Namespace returns the flag that a command needs to find an object again: " -n x", or nothing for the default
// namespace.
func Namespace(namespace string) string {
	if namespace == "" || namespace == "default" {
		return ""
	}
	return " -n " + namespace
}

// Clip makes text a single line of at most width characters.
func Clip(text string, width int) string {
	text = strings.ReplaceAll(text, "\n", " ")
	if r := []rune(text); len(r) > width {
		return string(r[:width-3]) + "..."
	}
	return text
}

// EventTime returns when an event was last seen. The API has four fields for it.
func EventTime(e *corev1.Event) time.Time {
	switch {
	case e.Series != nil && !e.Series.LastObservedTime.IsZero():
		return e.Series.LastObservedTime.Time
	case !e.LastTimestamp.IsZero():
		return e.LastTimestamp.Time
	case !e.EventTime.IsZero():
		return e.EventTime.Time
	}
	return e.CreationTimestamp.Time
}

// PodCondition returns a condition of a pod; nil if the pod has none of that type.
func PodCondition(pod *corev1.Pod, t corev1.PodConditionType) *corev1.PodCondition {
	for i := range pod.Status.Conditions {
		if pod.Status.Conditions[i].Type == t {
			return &pod.Status.Conditions[i]
		}
	}
	return nil
}

// NodeReady returns a node's Ready condition; nil if the node never reported.
func NodeReady(node *corev1.Node) *corev1.NodeCondition {
	for i := range node.Status.Conditions {
		if node.Status.Conditions[i].Type == corev1.NodeReady {
			return &node.Status.Conditions[i]
		}
	}
	return nil
}

// Settled reports whether waiting for a pod is over, because it is ready or has finished. bad reports that it failed
// for good.
func Settled(pod *corev1.Pod) (done, bad bool) {
	switch pod.Status.Phase {
	case corev1.PodSucceeded:
		return true, false
	case corev1.PodFailed:
		return true, true
	}
	ready := PodCondition(pod, corev1.PodReady)
	return ready != nil && ready.Status == corev1.ConditionTrue, false
}

// Restarts returns the total number of restarts of a pod's containers.
func Restarts(pod *corev1.Pod) int {
	n := 0
	for _, s := range pod.Status.ContainerStatuses {
		n += int(s.RestartCount)
	}
	return n
}

// Leaving returns what the deletion of an object waits for.
func Leaving(obj api.Object) string {
	if f := obj.GetFinalizers(); len(f) > 0 {
		return "waiting for " + strings.Join(f, ", ")
	}
	if g := obj.GetDeletionGracePeriodSeconds(); g != nil && *g > 0 {
		return "its containers have " + (time.Duration(*g) * time.Second).String() + " to end"
	}
	return "terminating"
}

// Quoted returns a list of words, each in quotation marks.
func Quoted(words []string) string {
	var out []string
	for _, w := range words {
		out = append(out, fmt.Sprintf("%q", w))
	}
	return strings.Join(out, " ")
}
