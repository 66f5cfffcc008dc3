package why

import (
	"fmt"
	"slices"
	"strings"

	"github.com/distribution/reference"
	corev1 "k8s.io/api/core/v1"

	"minik8s/internal/ctl/brief"
)

// podContainers explains the first container that is not well; false means that no container gives a reason.
func (s *situation) podContainers(pod *corev1.Pod) (Explanation, bool) {
	for _, list := range [][]corev1.ContainerStatus{pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses} {
		for i := range list {
			if v, bad := s.container(pod, &list[i]); bad {
				return v, true
			}
		}
	}
	// The containers were not created; their status only says that they wait.
	e := s.lastWarning("FailedMount", "FailedAttachVolume", "FailedCreatePodSandBox", "FailedCreatePodContainer", "NetworkNotReady")
	if e == nil || pod.Status.Phase == corev1.PodRunning {
		return s.ephemeralContainers(pod)
	}
	v := Explanation{Head: fmt.Sprintf("%s cannot start: %s", s.name(), e.Reason)}
	v.because("%s (%s)", brief.Clip(e.Message, 400), s.ago(brief.EventTime(e)))
	switch e.Reason {
	case "FailedMount", "FailedAttachVolume":
		v.advise("see that what the volume names is there: its configMap, secret, or path on node %s", pod.Spec.NodeName)
		v.try("get configmaps,secrets%s", brief.Namespace(pod.Namespace))
	default:
		v.try("why node %s", pod.Spec.NodeName)
	}
	v.try("describe %s", s.args())
	return v, true
}

// ephemeralContainers explains the first ephemeral container that does not start. How one ended does not matter to the
// pod.
func (s *situation) ephemeralContainers(pod *corev1.Pod) (Explanation, bool) {
	for i := range pod.Status.EphemeralContainerStatuses {
		status := &pod.Status.EphemeralContainerStatuses[i]
		w := status.State.Waiting
		if w == nil {
			continue
		}
		v, bad := s.waiting(pod, status, w)
		if !bad && w.Message != "" {
			v.because("%s", w.Message)
			v.try("describe %s", s.args())
			bad = true
		}
		if bad {
			v.Head = fmt.Sprintf("%s: its ephemeral container %s does not run: %s", s.name(), status.Name, w.Reason)
			return v, true
		}
	}
	return Explanation{}, false
}

func (s *situation) container(pod *corev1.Pod, status *corev1.ContainerStatus) (Explanation, bool) {
	if w := status.State.Waiting; w != nil {
		return s.waiting(pod, status, w)
	}
	t := status.State.Terminated
	if t == nil || t.ExitCode == 0 {
		return Explanation{}, false
	}
	v := Explanation{Head: fmt.Sprintf("%s: container %s has ended", s.name(), status.Name)}
	s.died(&v, pod, status, t, "")
	return v, true
}

func (s *situation) waiting(pod *corev1.Pod, status *corev1.ContainerStatus, w *corev1.ContainerStateWaiting) (Explanation, bool) {
	v := Explanation{Head: fmt.Sprintf("%s is not running: %s", s.name(), w.Reason)}
	switch w.Reason {
	case "ErrImagePull", "ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull", "RegistryUnavailable", "ImageInspectError":
		s.noImage(&v, pod, status, w)
	case "CrashLoopBackOff":
		v.because("container %s was started again %d times, and waits longer each time", status.Name, status.RestartCount)
		if t := status.LastTerminationState.Terminated; t != nil {
			s.died(&v, pod, status, t, " --previous")
		} else {
			v.try("logs %s -c %s --previous%s", pod.Name, status.Name, brief.Namespace(pod.Namespace))
		}
	case "CreateContainerConfigError":
		v.because("container %s: %s", status.Name, said(w, s.lastWarning("Failed")))
		switch text := strings.ToLower(said(w, nil)); {
		case strings.Contains(text, "configmap") || strings.Contains(text, "secret"):
			v.advise("make what is missing (a configMap, a secret, a key in one), or take it out of the manifest; the pod then starts by itself")
			v.try("get configmaps,secrets%s", brief.Namespace(pod.Namespace))
		case strings.Contains(text, "root"):
			v.advise("give the container a user in securityContext.runAsUser, use an image with one, or allow root")
		default:
			v.advise("mend the manifest and create the pod anew")
		}
		v.try("describe %s", s.args())
	case "RunContainerError", "CreateContainerError", "StartError":
		text := said(w, s.lastWarning("Failed", "BackOff"))
		if notExecutable(text) {
			s.noCommand(&v, pod, status, text)
			break
		}
		v.because("container %s: %s", status.Name, text)
		v.try("describe %s", s.args())
	default:
		// ContainerCreating, PodInitializing: in progress, or blocked by something that only events show.
		return Explanation{}, false
	}
	return v, true
}

// said returns a waiting container's message, or an event's if there is none.
func said(w *corev1.ContainerStateWaiting, e *corev1.Event) string {
	switch {
	case w.Message != "":
		return brief.Clip(w.Message, 400)
	case e != nil:
		return brief.Clip(e.Message, 400)
	}
	return "no message"
}

func (s *situation) noImage(v *Explanation, pod *corev1.Pod, status *corev1.ContainerStatus, w *corev1.ContainerStateWaiting) {
	image, always := status.Image, false
	for _, c := range append(append([]corev1.Container{}, pod.Spec.InitContainers...), pod.Spec.Containers...) {
		if c.Name == status.Name {
			image, always = c.Image, c.ImagePullPolicy == corev1.PullAlways
		}
	}
	v.because("the image %s of container %s cannot be had: %s", image, status.Name, said(w, s.lastWarning("Failed", "ErrImageNeverPull")))
	node := ""
	if len(s.nodes) > 1 {
		node = " --node " + pod.Spec.NodeName
	}
	if n := s.node(pod.Spec.NodeName); always && n != nil && hasImage(n, image) {
		v.advise("node %s has this image: with imagePullPolicy: IfNotPresent in the manifest it is used without asking the registry", n.Name)
	} else {
		v.advise("is its name right? %s", image)
	}
	v.try("image list%s", node)
	v.try("image pull %s%s", image, node)
	v.try("image import FILE.tar%s", node)
}

// hasImage reports whether a node has an image, by what its status says.
func hasImage(n *corev1.Node, image string) bool {
	named, err := reference.ParseDockerRef(image)
	if err != nil {
		return false
	}
	return slices.ContainsFunc(n.Status.Images, func(i corev1.ContainerImage) bool { return slices.Contains(i.Names, named.String()) })
}

// died explains how a container ended.
func (s *situation) died(v *Explanation, pod *corev1.Pod, status *corev1.ContainerStatus, t *corev1.ContainerStateTerminated, previous string) {
	if t.Reason == "OOMKilled" {
		limit := "its memory limit"
		for _, c := range pod.Spec.Containers {
			if q, ok := c.Resources.Limits[corev1.ResourceMemory]; ok && c.Name == status.Name {
				limit += " of " + q.String()
			}
		}
		v.Head = s.name() + " was killed for using too much memory (OOMKilled)"
		v.because("container %s went over %s, %s", status.Name, limit, s.ago(t.FinishedAt.Time))
		v.advise("raise resources.limits.memory in the manifest, or use less memory, and apply it anew")
		s.lastWords(v, status.Name)
		v.try("logs %s -c %s%s%s", pod.Name, status.Name, previous, brief.Namespace(pod.Namespace))
		return
	}
	if k, ok := s.killed(status.Name, t); ok {
		v.because("container %s was killed because %s", status.Name, k.why)
		v.because("it %s, %s", ended(t), s.ago(t.FinishedAt.Time))
		v.advise("%s", k.advice)
		s.lastWords(v, status.Name)
		v.try("logs %s -c %s%s%s", pod.Name, status.Name, previous, brief.Namespace(pod.Namespace))
		v.try("describe %s", s.args())
		return
	}
	if notExecutable(t.Message) || t.ExitCode == 127 {
		s.noCommand(v, pod, status, brief.Clip(t.Message, 400))
		s.lastWords(v, status.Name)
		return
	}
	v.because("container %s %s, %s", status.Name, ended(t), s.ago(t.FinishedAt.Time))
	s.lastWords(v, status.Name)
	v.try("logs %s -c %s%s%s", pod.Name, status.Name, previous, brief.Namespace(pod.Namespace))
	v.try("describe %s", s.args())
}

// notExecutable reports whether the runtime's message is about the command itself.
func notExecutable(text string) bool {
	text = strings.ToLower(text)
	return strings.Contains(text, "executable file not found") || strings.Contains(text, "exec format error") ||
		(strings.Contains(text, "exec") && (strings.Contains(text, "no such file or directory") || strings.Contains(text, "permission denied")))
}

func (s *situation) noCommand(v *Explanation, pod *corev1.Pod, status *corev1.ContainerStatus, text string) {
	command := "its image's own command"
	for _, c := range pod.Spec.Containers {
		if words := append(append([]string{}, c.Command...), c.Args...); c.Name == status.Name && len(words) > 0 {
			command = brief.Quoted(words)
		}
	}
	v.Head = fmt.Sprintf("%s cannot start: the command of container %s cannot be run", s.name(), status.Name)
	v.because("it is %s", command)
	if text != "" {
		v.because("%s", text)
	}
	v.advise("see that the image has that file, that it may be executed, and that it is for this machine's processor")
	v.advise("correct command and args in the manifest, then: minik8sd ctl update pod %s%s -f FILE --force", pod.Name, brief.Namespace(pod.Namespace))
}

// ended returns in words how a container ended.
func ended(t *corev1.ContainerStateTerminated) string {
	text := fmt.Sprintf("ended with exit code %d", t.ExitCode)
	switch {
	case t.Reason == "OOMKilled":
		return text + " (killed: out of memory)"
	case t.ExitCode == 126:
		text += " (its command may not be executed)"
	case t.ExitCode == 127:
		text += " (its command was not found)"
	case t.ExitCode == 137:
		text += " (killed by SIGKILL)"
	case t.ExitCode == 139:
		text += " (it crashed: SIGSEGV)"
	case t.ExitCode == 143:
		text += " (told to end: SIGTERM)"
	case t.ExitCode > 128 && t.ExitCode < 160:
		text += fmt.Sprintf(" (signal %d)", t.ExitCode-128)
	}
	if t.Message != "" {
		text += ": " + brief.Clip(t.Message, 300)
	}
	return text
}

// lastWords adds the last lines of a container's log.
func (s *situation) lastWords(v *Explanation, container string) {
	text := strings.TrimRight(s.logs[container], "\n")
	if text == "" || len(v.Log) > 0 {
		return
	}
	lines := strings.Split(text, "\n")
	if len(lines) > logTail {
		lines = lines[len(lines)-logTail:]
	}
	v.LogHead = "Last words of container " + container
	for _, l := range lines {
		v.Log = append(v.Log, brief.Clip(strings.TrimRight(l, "\r"), 160))
	}
}
