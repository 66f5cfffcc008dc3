package status

import (
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"minik8s/internal/api/podspec"
	"minik8s/internal/kubelet/cri"
	"minik8s/internal/kubelet/plan"
)

// ephemeralStatuses is one status per ephemeral container, in the order of their names. They are never ready.
func ephemeralStatuses(in plan.Input) []corev1.ContainerStatus {
	var out []corev1.ContainerStatus
	for i := range in.Pod.Spec.EphemeralContainers {
		st := containerStatus(in, (*corev1.Container)(&in.Pod.Spec.EphemeralContainers[i].EphemeralContainerCommon))
		st.Ready, st.Started = false, nil
		out = append(out, st)
	}
	sortByName(out)
	return out
}

// containerStatuses is one status per container of the spec, in the order of their names.
func containerStatuses(in plan.Input) []corev1.ContainerStatus {
	out := make([]corev1.ContainerStatus, 0, len(in.Pod.Spec.Containers))
	for i := range in.Pod.Spec.Containers {
		out = append(out, containerStatus(in, &in.Pod.Spec.Containers[i]))
	}
	sortByName(out)
	return out
}

func sortByName(list []corev1.ContainerStatus) {
	slices.SortFunc(list, func(a, b corev1.ContainerStatus) int { return strings.Compare(a.Name, b.Name) })
}

// initStatuses is one status per init container, in the order of the spec.
func initStatuses(in plan.Input) []corev1.ContainerStatus {
	var out []corev1.ContainerStatus
	for i := range in.Pod.Spec.InitContainers {
		spec := &in.Pod.Spec.InitContainers[i]
		st := containerStatus(in, spec)
		if t := st.State.Terminated; t != nil && !podspec.IsSidecar(spec) {
			st.Ready = t.ExitCode == 0
		}
		out = append(out, st)
	}
	return out
}

func containerStatus(in plan.Input, spec *corev1.Container) corev1.ContainerStatus {
	old := podspec.ContainerStatus(&in.Pod.Status, spec.Name)
	c := plan.NewestStarted(in.View, spec.Name)
	if c == nil {
		return lostStatus(in, spec, old)
	}
	st := corev1.ContainerStatus{Name: spec.Name, RestartCount: int32(c.Attempt), Image: c.Image, ImageID: c.ImageID,
		ContainerID: cri.ContainerIDPrefix + c.ID}
	if st.Image == "" {
		st.Image = spec.Image
	}
	if l := spec.Lifecycle; l != nil {
		st.StopSignal = l.StopSignal
	}
	if old != nil { // an attempt that was shown may have been removed before it started
		st.RestartCount = max(st.RestartCount, old.RestartCount)
	}
	last := lastState(in, c, old)
	switch c.State {
	case cri.Running:
		if in.InPostStart(c) {
			st.State.Waiting = waitingToStart(in, spec.Name)
			break
		}
		st.State.Running = &corev1.ContainerStateRunning{StartedAt: apiTime(c.StartedAt)}
		st.Ready = in.Ready(c)
	case cri.Exited:
		end := terminated(in, c, old)
		if w := WaitingToRestart(in, c); w != nil {
			st.State.Waiting, last = w, end
		} else {
			st.State.Terminated = end
		}
	}
	st.LastTerminationState.Terminated = last
	started := st.State.Running != nil && in.Started(c)
	st.Started = &started
	return st
}

// lostStatus is the status of a container that the runtime does not have yet, or not any more.
func lostStatus(in plan.Input, spec *corev1.Container, old *corev1.ContainerStatus) corev1.ContainerStatus {
	started := false
	st := corev1.ContainerStatus{Name: spec.Name, Image: spec.Image, Started: &started}
	if old != nil {
		st.RestartCount, st.ImageID, st.ContainerID = old.RestartCount, old.ImageID, old.ContainerID
		st.LastTerminationState = old.LastTerminationState
		switch t := old.State.Terminated; {
		case t != nil && (!plan.RestartPolicyAllows(in.Pod, spec.Name, t.ExitCode) || in.Termination() != nil):
			st.State.Terminated = t
			return st
		case t != nil:
			st.LastTerminationState.Terminated = t
		case old.State.Running != nil:
			st.LastTerminationState.Terminated = &corev1.ContainerStateTerminated{
				ExitCode: 137, Reason: ReasonLost, ContainerID: old.ContainerID, StartedAt: old.State.Running.StartedAt,
				Message: "The container could not be located in the runtime",
			}
		}
		over := in.Termination() != nil || podspec.EphemeralContainer(in.Pod, spec.Name) != nil
		if t := st.LastTerminationState.Terminated; t != nil && over {
			st.State.Terminated, st.LastTerminationState = t, corev1.ContainerState{}
			return st
		}
	}
	st.State.Waiting = waitingToStart(in, spec.Name)
	return st
}

// lastState is how the attempt before c ended.
func lastState(in plan.Input, c *cri.Container, old *corev1.ContainerStatus) *corev1.ContainerStateTerminated {
	var prev *cri.Container
	for i := range in.View.Containers {
		o := &in.View.Containers[i]
		if o.Name == c.Name && o.Attempt < c.Attempt && o.State == cri.Exited && (prev == nil || o.Attempt > prev.Attempt) {
			prev = o
		}
	}
	if prev != nil {
		return terminated(in, prev, old)
	}
	if old == nil || c.Attempt == 0 {
		return nil
	}
	if t := old.State.Terminated; t != nil && t.ContainerID != cri.ContainerIDPrefix+c.ID {
		return t
	}
	if t := old.LastTerminationState.Terminated; t != nil && t.ContainerID != cri.ContainerIDPrefix+c.ID {
		return t
	}
	return nil
}

// terminated is how c ended. What an earlier status says about this very attempt stays.
func terminated(in plan.Input, c *cri.Container, old *corev1.ContainerStatus) *corev1.ContainerStateTerminated {
	id := cri.ContainerIDPrefix + c.ID
	if old != nil {
		for _, t := range []*corev1.ContainerStateTerminated{old.State.Terminated, old.LastTerminationState.Terminated} {
			if t != nil && t.ContainerID == id {
				return t
			}
		}
	}
	t := &corev1.ContainerStateTerminated{ExitCode: c.ExitCode, ContainerID: id,
		StartedAt: apiTime(c.StartedAt), FinishedAt: apiTime(c.FinishedAt), Message: in.State.TerminationMessages[c.ID]}
	switch {
	case c.Lost:
		t.Reason, t.Message = ReasonLost, "The machine was started anew while the container ran"
	case c.StartError != "":
		t.Reason, t.Message = "StartError", c.StartError
	case c.OOMKilled:
		t.Reason = "OOMKilled"
	case c.ExitCode == 0:
		t.Reason = "Completed"
	default:
		t.Reason = "Error"
	}
	return t
}

func apiTime(t time.Time) metav1.Time {
	if t.IsZero() {
		return metav1.NewTime(time.Unix(0, 0).UTC()) // Kubernetes' way to say: never
	}
	return metav1.NewTime(t).Rfc3339Copy()
}
