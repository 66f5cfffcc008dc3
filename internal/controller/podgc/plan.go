package podgc

import (
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"minik8s/internal/controller/pods"
)

// surplus are the finished pods beyond the threshold, the oldest first.
func surplus(list []*corev1.Pod, threshold int) []*corev1.Pod {
	if threshold <= 0 {
		return nil
	}
	var done []*corev1.Pod
	for _, p := range list {
		if pods.Finished(p) && p.DeletionTimestamp == nil {
			done = append(done, p)
		}
	}
	over := len(done) - threshold
	if over <= 0 {
		return nil
	}
	slices.SortFunc(done, func(a, b *corev1.Pod) int {
		if c := a.CreationTimestamp.Compare(b.CreationTimestamp.Time); c != 0 {
			return c
		}
		return strings.Compare(a.Namespace+"/"+a.Name, b.Namespace+"/"+b.Name)
	})
	return done[:over]
}

// stranded are the pods that are bound to a Node that does not exist, by its name.
func stranded(list []*corev1.Pod, there func(node string) bool) map[string][]*corev1.Pod {
	out := map[string][]*corev1.Pod{}
	for _, p := range list {
		if n := p.Spec.NodeName; n != "" && !there(n) {
			out[n] = append(out[n], p)
		}
	}
	return out
}

// markFailed is the pod with the status Failed, because its Node was deleted.
func markFailed(p *corev1.Pod, now time.Time) *corev1.Pod {
	upd := p.DeepCopy()
	upd.Status.Phase = corev1.PodFailed
	upd.Status.Reason, upd.Status.Message = "NodeLost", "the node "+p.Spec.NodeName+" of the pod was removed"
	c := corev1.PodCondition{Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue, Reason: "DeletionByPodGC",
		Message: "PodGC: node no longer exists", LastTransitionTime: metav1.NewTime(now.Truncate(time.Second))}
	upd.Status.Conditions = append(slices.DeleteFunc(upd.Status.Conditions, func(x corev1.PodCondition) bool { return x.Type == c.Type }), c)
	return upd
}
