package why

import (
	"fmt"
	"slices"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"minik8s/internal/api"
	"minik8s/internal/api/table"
	"minik8s/internal/ctl/brief"
)

// blamed returns the pod whose trouble explains its workload's; nil if all are well. Pods that are being deleted are
// considered last, and pods of the newest template before older ones.
func (s *situation) blamed() *corev1.Pod {
	var worst *corev1.Pod
	most := 0
	for _, p := range s.pods {
		if n := s.badness(p); n > most || n == most && n > 0 && worst.CreationTimestamp.Before(&p.CreationTimestamp) {
			worst, most = p, n
		}
	}
	return worst
}

// badness rates how much a pod explains; 0 means that it is well.
func (s *situation) badness(pod *corev1.Pod) int {
	const isNew = 10 // more than anything that can be wrong with an old pod
	if pod.DeletionTimestamp != nil {
		return 1
	}
	n := s.trouble(pod)
	if n > 0 && s.template.key != "" && s.template.made(pod) {
		n += isNew
	}
	return n
}

func (s *situation) trouble(pod *corev1.Pod) int {
	const (
		waits   = 3 // for its volumes, its readiness or anything else
		failed  = 4 // failed for good
		noNode  = 5
		stopped = 6 // a container crashes or cannot be created
	)
	_, job := s.obj.(*batchv1.Job)
	done, bad := brief.Settled(pod)
	switch {
	case bad && job:
		return failed
	case bad: // it has been replaced and is kept only for inspection
		return waits - 1
	case pod.Spec.NodeName == "":
		return noNode
	case stuck(pod):
		return stopped
	case pod.Status.Phase != corev1.PodSucceeded && s.onLostNode(pod):
		return noNode
	case done:
		return 0
	}
	return waits
}

// stuck reports whether a container of the pod has ended badly, or waits for more than its turn to start.
func stuck(pod *corev1.Pod) bool {
	return slices.ContainsFunc(slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses), func(c corev1.ContainerStatus) bool {
		if w := c.State.Waiting; w != nil {
			return w.Reason != "" && w.Reason != "ContainerCreating" && w.Reason != "PodInitializing"
		}
		return c.State.Terminated != nil && c.State.Terminated.ExitCode != 0
	})
}

// blamePod adds the reasons of the pod in the worst state.
func (s *situation) blamePod(v *Explanation, w workload) {
	sick := map[string]int{}
	for _, p := range s.pods {
		if s.badness(p) > 0 {
			sick[table.PodStatus(p)]++
		}
	}
	worst := s.blamed()
	if worst == nil {
		if job, ok := s.obj.(*batchv1.Job); len(s.pods) == 0 && w.want > 0 && !(ok && (isSuspended(job) || runsNone(job))) {
			v.because("it has no pods")
		}
		return
	}
	var counts []string
	for status, n := range sick {
		counts = append(counts, fmt.Sprintf("%d %s", n, status))
	}
	slices.Sort(counts)
	pod := *s
	pod.kind, pod.obj, pod.events = api.Pods, worst, s.told
	own := pod.explainPod(worst)
	v.because("of its %d pods: %s", len(s.pods), strings.Join(counts, ", "))
	v.Why = append(v.Why, own.Head)
	v.Why = append(v.Why, own.Why...)
	v.LogHead, v.Log = own.LogHead, own.Log
	v.try("why %s", pod.args())
}
