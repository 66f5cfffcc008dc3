package kubelet

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"minik8s/internal/kubelet/cri"
)

// containerStatuses is one status per container of the spec, in the order of their names.
func containerStatuses(in input) []corev1.ContainerStatus {
	out := make([]corev1.ContainerStatus, 0, len(in.pod.Spec.Containers))
	for i := range in.pod.Spec.Containers {
		out = append(out, containerStatus(in, &in.pod.Spec.Containers[i]))
	}
	sortByName(out)
	return out
}

func sortByName(list []corev1.ContainerStatus) {
	slices.SortFunc(list, func(a, b corev1.ContainerStatus) int { return strings.Compare(a.Name, b.Name) })
}

// initStatuses is one status per init container, in the order of the spec.
func initStatuses(in input) []corev1.ContainerStatus {
	var out []corev1.ContainerStatus
	for i := range in.pod.Spec.InitContainers {
		spec := &in.pod.Spec.InitContainers[i]
		st := containerStatus(in, spec)
		if t := st.State.Terminated; t != nil && !isSidecar(spec) {
			st.Ready = t.ExitCode == 0
		}
		out = append(out, st)
	}
	return out
}

func containerStatus(in input, spec *corev1.Container) corev1.ContainerStatus {
	old := statusIn(&in.pod.Status, spec.Name)
	c := newestStarted(in.view, spec.Name)
	if c == nil {
		return lostStatus(in, spec, old)
	}
	st := corev1.ContainerStatus{Name: spec.Name, RestartCount: int32(c.Attempt), Image: c.Image, ImageID: c.ImageID,
		ContainerID: containerIDPrefix + c.ID}
	if st.Image == "" {
		st.Image = spec.Image
	}
	if l := spec.Lifecycle; l != nil {
		st.StopSignal = l.StopSignal
	}
	if old != nil { // an attempt that was shown may have been removed, half-made
		st.RestartCount = max(st.RestartCount, old.RestartCount)
	}
	last := lastState(in, c, old)
	switch c.State {
	case cri.Running:
		if in.hooking(c) {
			st.State.Waiting = waitingFor(in, spec.Name)
			break
		}
		st.State.Running = &corev1.ContainerStateRunning{StartedAt: timeOf(c.StartedAt)}
		st.Ready = in.ready(c)
	case cri.Exited:
		end := terminated(in, c, old)
		if w := waitingAgain(in, c); w != nil {
			st.State.Waiting, last = w, end
		} else {
			st.State.Terminated = end
		}
	}
	st.LastTerminationState.Terminated = last
	started := st.State.Running != nil && in.started(c)
	st.Started = &started
	return st
}

// lostStatus is for a container that the runtime does not have: not yet, or not any more.
func lostStatus(in input, spec *corev1.Container, old *corev1.ContainerStatus) corev1.ContainerStatus {
	started := false
	st := corev1.ContainerStatus{Name: spec.Name, Image: spec.Image, Started: &started}
	if old != nil {
		st.RestartCount, st.ImageID, st.ContainerID = old.RestartCount, old.ImageID, old.ContainerID
		st.LastTerminationState = old.LastTerminationState
		switch t := old.State.Terminated; {
		case t != nil && (!restarts(in.pod, spec.Name, t.ExitCode) || in.endReason() != nil):
			st.State.Terminated = t
			return st
		case t != nil:
			st.LastTerminationState.Terminated = t
		case old.State.Running != nil:
			st.LastTerminationState.Terminated = &corev1.ContainerStateTerminated{
				ExitCode: 137, Reason: reasonLost, ContainerID: old.ContainerID, StartedAt: old.State.Running.StartedAt,
				Message: "The container could not be located in the runtime",
			}
		}
		over := in.endReason() != nil || ephemeralNamed(in.pod, spec.Name) != nil
		if t := st.LastTerminationState.Terminated; t != nil && over {
			st.State.Terminated, st.LastTerminationState = t, corev1.ContainerState{}
			return st
		}
	}
	st.State.Waiting = waitingFor(in, spec.Name)
	return st
}

// waitingFor is why a container does not run yet.
func waitingFor(in input, name string) *corev1.ContainerStateWaiting {
	if w := imageTrouble(in, name); w != nil {
		return w
	}
	if f := in.mem.failures[(action{verb: startContainer, container: name}).key()]; f != nil {
		return &corev1.ContainerStateWaiting{Reason: f.reason, Message: f.message}
	}
	if _, missing := targetID(in.pod, in.view, name); missing != "" && in.memoryOf(name).image {
		return &corev1.ContainerStateWaiting{Reason: "ContainerCreating", Message: missing}
	}
	if len(in.pod.Spec.InitContainers) > 0 {
		return &corev1.ContainerStateWaiting{Reason: "PodInitializing"}
	}
	return &corev1.ContainerStateWaiting{Reason: "ContainerCreating"}
}

// waitingAgain is why a container that has exited waits; nil if it stays as it ended, or is just
// being started again.
func waitingAgain(in input, c *cri.Container) *corev1.ContainerStateWaiting {
	if in.endReason() != nil || !in.runsAgain(c) {
		return nil
	}
	if w := imageTrouble(in, c.Name); w != nil {
		return w
	}
	if f := in.mem.failures[(action{verb: startContainer, container: c.Name}).key()]; f != nil {
		return &corev1.ContainerStateWaiting{Reason: f.reason, Message: f.message}
	}
	t, delay := in.memoryOf(c.Name).restartAt(c)
	if !in.now.Before(t) || imageChanged(in.pod, c) {
		return nil
	}
	return &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff", Message: fmt.Sprintf(
		"back-off %s restarting failed container=%s pod=%s_%s(%s)", delay, c.Name, in.pod.Name, in.pod.Namespace, in.pod.UID)}
}

// memoryOf is mem.container without the making, so that pure functions stay so.
func (in input) memoryOf(name string) *containerMemory {
	if cm := in.mem.containers[name]; cm != nil {
		return cm
	}
	return &containerMemory{toldBackoff: -1}
}

// pullErrorShown is how long a failed pull is shown as what it is, before it is shown as a back-off.
const pullErrorShown = 2 * time.Second

// imageTrouble is why the image cannot be had; nil if there is nothing to say.
func imageTrouble(in input, name string) *corev1.ContainerStateWaiting {
	f := in.mem.failures[(action{verb: ensureImage, container: name}).key()]
	if f == nil {
		return nil
	}
	if f.reason != reasonErrImagePull || in.now.Before(f.at.Add(pullErrorShown)) {
		return &corev1.ContainerStateWaiting{Reason: f.reason, Message: f.message}
	}
	image := ""
	if spec := containerNamed(in.pod, name); spec != nil {
		image = spec.Image
	}
	return &corev1.ContainerStateWaiting{Reason: "ImagePullBackOff",
		Message: fmt.Sprintf("Back-off pulling image %q: %s: %s", image, f.reason, f.message)}
}

// lastState is how the attempt before c ended.
func lastState(in input, c *cri.Container, old *corev1.ContainerStatus) *corev1.ContainerStateTerminated {
	var prev *cri.Container
	for i := range in.view.Containers {
		o := &in.view.Containers[i]
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
	if t := old.State.Terminated; t != nil && t.ContainerID != containerIDPrefix+c.ID {
		return t
	}
	if t := old.LastTerminationState.Terminated; t != nil && t.ContainerID != containerIDPrefix+c.ID {
		return t
	}
	return nil
}

// terminated is how c ended. What an earlier status says about that very container stays.
func terminated(in input, c *cri.Container, old *corev1.ContainerStatus) *corev1.ContainerStateTerminated {
	id := containerIDPrefix + c.ID
	if old != nil {
		for _, t := range []*corev1.ContainerStateTerminated{old.State.Terminated, old.LastTerminationState.Terminated} {
			if t != nil && t.ContainerID == id {
				return t
			}
		}
	}
	t := &corev1.ContainerStateTerminated{ExitCode: c.ExitCode, ContainerID: id,
		StartedAt: timeOf(c.StartedAt), FinishedAt: timeOf(c.FinishedAt), Message: in.mem.messages[c.ID]}
	switch {
	case c.Lost:
		t.Reason, t.Message = reasonLost, "The machine was started anew while the container ran"
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

func timeOf(t time.Time) metav1.Time {
	if t.IsZero() {
		return metav1.NewTime(time.Unix(0, 0).UTC()) // Kubernetes' way to say: never
	}
	return metav1.NewTime(t).Rfc3339Copy()
}
