package kubelet

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"minik8s/internal/kubelet/cri"
)

// A pod's containers have three parts to play. Init containers run before all others, one after the
// other, each to its end. Sidecars stand among them in the list: each is started in its turn, is waited
// for until it has started, and then runs as long as the pod. Main containers follow, all at once.

// isSidecar says that an init container is to run as long as the pod.
func isSidecar(c *corev1.Container) bool {
	return c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways
}

// initNamed is the init container or sidecar of that name; nil if it is a main container, or none.
func initNamed(pod *corev1.Pod, name string) *corev1.Container {
	for i := range pod.Spec.InitContainers {
		if pod.Spec.InitContainers[i].Name == name {
			return &pod.Spec.InitContainers[i]
		}
	}
	return nil
}

// sidecarNamed says that the container of that name is a sidecar.
func sidecarNamed(pod *corev1.Pod, name string) bool {
	c := initNamed(pod, name)
	return c != nil && isSidecar(c)
}

// allContainers is the pod's containers in the order in which they start.
func allContainers(pod *corev1.Pod) []*corev1.Container {
	out := make([]*corev1.Container, 0, len(pod.Spec.InitContainers)+len(pod.Spec.Containers))
	for i := range pod.Spec.InitContainers {
		out = append(out, &pod.Spec.InitContainers[i])
	}
	for i := range pod.Spec.Containers {
		out = append(out, &pod.Spec.Containers[i])
	}
	return out
}

// ofSandbox says that c was made in the sandbox that there is now. What the init containers did for an
// earlier one has to be done again. It goes by names: of two times the later may be the smaller one, if the
// clock was set in between.
func (in input) ofSandbox(c *cri.Container) bool {
	s := in.view.Sandbox
	return s != nil && s.Whole && c.SandboxID == s.ID
}

// initialized says that the init containers are behind the pod: a main container has been started in
// this sandbox, or all of them are done.
func (in input) initialized() bool {
	if len(in.pod.Spec.InitContainers) == 0 {
		return true
	}
	for i := range in.pod.Spec.Containers {
		name := in.pod.Spec.Containers[i].Name
		if c := newestStarted(in.view, name); c != nil && in.ofSandbox(c) {
			return true
		}
	}
	return len(in.undone()) == 0
}

// undone names the init containers and sidecars that are not done.
func (in input) undone() []string {
	var out []string
	for i := range in.pod.Spec.InitContainers {
		if c := &in.pod.Spec.InitContainers[i]; !in.initDone(c) {
			out = append(out, c.Name)
		}
	}
	return out
}

// initDone says that an init container has ended well, or that a sidecar has started.
func (in input) initDone(spec *corev1.Container) bool {
	c := newest(in.view, spec.Name)
	if c == nil || !in.ofSandbox(c) {
		return false
	}
	if isSidecar(spec) {
		return c.State == cri.Running && in.started(c) && !in.hooking(c)
	}
	return c.State == cri.Exited && c.ExitCode == 0
}

// initFailed says that an init container has failed and is not to be tried again, so that the pod has.
func (in input) initFailed() bool {
	if len(in.pod.Spec.InitContainers) == 0 || in.initialized() {
		return false
	}
	return slices.ContainsFunc(in.pod.Spec.InitContainers, func(spec corev1.Container) bool {
		if isSidecar(&spec) || in.mem.inFlight(action{verb: startContainer, container: spec.Name}.key()) {
			return false
		}
		if c := newest(in.view, spec.Name); c != nil {
			return c.State == cri.Exited && c.ExitCode != 0 && !in.runsAgain(c)
		}
		t := lastTermination(in.pod, spec.Name)
		return t != nil && t.ExitCode != 0 && !restarts(in.pod, spec.Name, t.ExitCode)
	})
}
