package status

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"minik8s/internal/api/podspec"
	"minik8s/internal/kubelet/cri"
	"minik8s/internal/kubelet/plan"
)

// waitingToStart is why a container does not run yet.
func waitingToStart(in plan.Input, name string) *corev1.ContainerStateWaiting {
	if w := ImageWaiting(in, name); w != nil {
		return w
	}
	if f := in.State.Failures[(plan.Action{Verb: plan.StartContainer, Container: name}).Key()]; f != nil {
		return &corev1.ContainerStateWaiting{Reason: f.Reason, Message: f.Message}
	}
	if _, missing := plan.TargetID(in.Pod, in.View, name); missing != "" && in.Container(name).ImagePresent {
		return &corev1.ContainerStateWaiting{Reason: "ContainerCreating", Message: missing}
	}
	if len(in.Pod.Spec.InitContainers) > 0 {
		return &corev1.ContainerStateWaiting{Reason: "PodInitializing"}
	}
	return &corev1.ContainerStateWaiting{Reason: "ContainerCreating"}
}

// WaitingToRestart is why a container that has exited waits for its restart; nil if it will not restart, or is
// just being restarted.
func WaitingToRestart(in plan.Input, c *cri.Container) *corev1.ContainerStateWaiting {
	if in.Termination() != nil || !in.WillRestart(c) {
		return nil
	}
	if w := ImageWaiting(in, c.Name); w != nil {
		return w
	}
	if f := in.State.Failures[(plan.Action{Verb: plan.StartContainer, Container: c.Name}).Key()]; f != nil {
		return &corev1.ContainerStateWaiting{Reason: f.Reason, Message: f.Message}
	}
	t, delay := in.Container(c.Name).RestartAt(c)
	if !in.Now.Before(t) || plan.ImageChanged(in.Pod, c) {
		return nil
	}
	return &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff", Message: fmt.Sprintf(
		"back-off %s restarting failed container=%s pod=%s_%s(%s)", delay, c.Name, in.Pod.Name, in.Pod.Namespace, in.Pod.UID)}
}

// ImageWaiting is why a container waits for its image: ErrImagePull, ImagePullBackOff and so on; nil if it does not.
func ImageWaiting(in plan.Input, name string) *corev1.ContainerStateWaiting {
	f := in.State.Failures[(plan.Action{Verb: plan.EnsureImage, Container: name}).Key()]
	if f == nil {
		return nil
	}
	if f.Reason != plan.ReasonErrImagePull || in.Now.Before(f.At.Add(plan.PullErrorShownFor)) {
		return &corev1.ContainerStateWaiting{Reason: f.Reason, Message: f.Message}
	}
	image := ""
	if spec := podspec.Container(in.Pod, name); spec != nil {
		image = spec.Image
	}
	return &corev1.ContainerStateWaiting{Reason: "ImagePullBackOff",
		Message: fmt.Sprintf("Back-off pulling image %q: %s: %s", image, f.Reason, f.Message)}
}
