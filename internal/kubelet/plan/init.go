package plan

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"minik8s/internal/api/podspec"
	"minik8s/internal/kubelet/cri"
)

// A pod's containers start in this order (KEP-753). Init containers run before all others, one after the other, and
// each must end. Sidecars are in the same list. Each is started in its turn, the next one waits until it has started,
// and it then runs as long as the pod. Main containers follow, all at once.

// inSandbox reports whether c was created in the present sandbox. Init containers run again in each new sandbox. Times
// are not compared, because the clock may have been set in between.
func (in Input) inSandbox(c *cri.Container) bool {
	s := in.View.Sandbox
	return s != nil && s.Whole && c.SandboxID == s.ID
}

// Initialized reports whether the pod has passed its init containers: a main container has been started in this
// sandbox, or all init containers are done.
func (in Input) Initialized() bool {
	if len(in.Pod.Spec.InitContainers) == 0 {
		return true
	}
	for i := range in.Pod.Spec.Containers {
		name := in.Pod.Spec.Containers[i].Name
		if c := NewestStarted(in.View, name); c != nil && in.inSandbox(c) {
			return true
		}
	}
	return len(in.Uninitialized()) == 0
}

// Uninitialized returns the names of the init containers and sidecars that are not done.
func (in Input) Uninitialized() []string {
	var out []string
	for i := range in.Pod.Spec.InitContainers {
		if c := &in.Pod.Spec.InitContainers[i]; !in.initDone(c) {
			out = append(out, c.Name)
		}
	}
	return out
}

// initDone reports whether an init container has succeeded, or a sidecar has started.
func (in Input) initDone(spec *corev1.Container) bool {
	c := Newest(in.View, spec.Name)
	if c == nil || !in.inSandbox(c) {
		return false
	}
	if podspec.IsSidecar(spec) {
		return c.State == cri.Running && in.Started(c) && !in.InPostStart(c)
	}
	return c.State == cri.Exited && c.ExitCode == 0
}

// InitFailed reports whether an init container has failed and will not restart. The pod has then failed.
func (in Input) InitFailed() bool {
	if len(in.Pod.Spec.InitContainers) == 0 || in.Initialized() {
		return false
	}
	return slices.ContainsFunc(in.Pod.Spec.InitContainers, func(spec corev1.Container) bool {
		if podspec.IsSidecar(&spec) || in.State.IsInProgress(Action{Verb: StartContainer, Container: spec.Name}.Key()) {
			return false
		}
		if c := Newest(in.View, spec.Name); c != nil {
			return c.State == cri.Exited && c.ExitCode != 0 && !in.WillRestart(c)
		}
		t := lastTermination(in.Pod, spec.Name)
		return t != nil && t.ExitCode != 0 && !RestartPolicyAllows(in.Pod, spec.Name, t.ExitCode)
	})
}
