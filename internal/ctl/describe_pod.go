package ctl

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/yaml"

	"minik8s/internal/api/table"
	"minik8s/internal/ctl/brief"
)

func (s *session) describePod(out *sheet, pod *corev1.Pod) {
	node := pod.Spec.NodeName
	if pod.Status.HostIP != "" {
		node += " (" + pod.Status.HostIP + ")"
	}
	out.field("Node", node)
	if t := pod.Status.StartTime; t != nil {
		out.field("Start Time", s.when(*t))
	}
	state := table.PodStatus(pod)
	out.field("Status", s.paint(stateColour(state), state))
	if pod.Status.Reason != "" {
		out.field("Reason", pod.Status.Reason)
	}
	if pod.Status.Message != "" {
		out.field("Message", pod.Status.Message)
	}
	out.field("IP", pod.Status.PodIP)
	out.field("Restart Policy", string(pod.Spec.RestartPolicy))
	out.field("QoS Class", string(pod.Status.QOSClass))
	if len(pod.Spec.NodeSelector) > 0 {
		out.pairs("Node Selector", pod.Spec.NodeSelector)
	}
	if len(pod.Spec.InitContainers) > 0 {
		out.line("Init Containers:")
		s.describeContainers(out, pod.Spec.InitContainers, pod.Status.InitContainerStatuses)
	}
	out.line("Containers:")
	s.describeContainers(out, pod.Spec.Containers, pod.Status.ContainerStatuses)
	if len(pod.Spec.EphemeralContainers) > 0 {
		out.line("Ephemeral Containers:")
		s.describeContainers(out, ephemeralContainers(pod), pod.Status.EphemeralContainerStatuses)
	}
	if len(pod.Status.Conditions) > 0 {
		out.line("Conditions:")
		for _, c := range pod.Status.Conditions {
			out.line("  %-26s %-8s %s", c.Type, c.Status, strings.TrimSpace(c.Reason+" "+c.Message))
		}
	}
	describeVolumes(out, pod.Spec.Volumes)
	if len(pod.Spec.Tolerations) > 0 {
		var lines []string
		for _, t := range pod.Spec.Tolerations {
			lines = append(lines, toleration(t))
		}
		out.lines("Tolerations", lines)
	}
}

// ephemeralContainers are those that were added to a pod while it ran, as ordinary ones.
func ephemeralContainers(pod *corev1.Pod) []corev1.Container {
	var out []corev1.Container
	for _, e := range pod.Spec.EphemeralContainers {
		out = append(out, corev1.Container(e.EphemeralContainerCommon))
	}
	return out
}

func (s *session) describeContainers(out *sheet, containers []corev1.Container, statuses []corev1.ContainerStatus) {
	byName := map[string]*corev1.ContainerStatus{}
	for i := range statuses {
		byName[statuses[i].Name] = &statuses[i]
	}
	for i := range containers {
		out.in("  ", func() {
			out.line("%s:", containers[i].Name)
			out.in("  ", func() { s.describeContainer(out, &containers[i], byName[containers[i].Name]) })
		})
	}
}

func (s *session) describeContainer(out *sheet, c *corev1.Container, status *corev1.ContainerStatus) {
	if status != nil {
		out.field("Container ID", status.ContainerID)
	}
	out.field("Image", c.Image)
	if status != nil && status.ImageID != "" {
		out.field("Image ID", status.ImageID)
	}
	var ports []string
	for _, p := range c.Ports {
		text := fmt.Sprintf("%d/%s", p.ContainerPort, p.Protocol)
		if p.HostPort != 0 {
			text += fmt.Sprintf(" (host port %d)", p.HostPort)
		}
		ports = append(ports, text)
	}
	if len(ports) > 0 {
		out.field("Ports", strings.Join(ports, ", "))
	}
	if len(c.Command) > 0 {
		out.field("Command", brief.Quoted(c.Command))
	}
	if len(c.Args) > 0 {
		out.field("Args", brief.Quoted(c.Args))
	}
	if status != nil {
		s.describeState(out, "State", &status.State)
		if status.LastTerminationState != (corev1.ContainerState{}) {
			s.describeState(out, "Last State", &status.LastTerminationState)
		}
		out.field("Ready", fmt.Sprint(status.Ready))
		out.field("Restart Count", fmt.Sprint(status.RestartCount))
	}
	out.resources("Requests", c.Resources.Requests)
	out.resources("Limits", c.Resources.Limits)
	var env []string
	for _, e := range c.Env {
		if e.ValueFrom != nil {
			env = append(env, e.Name+" from "+source(e.ValueFrom))
		} else {
			env = append(env, e.Name+"="+e.Value)
		}
	}
	if len(env) > 0 {
		out.lines("Environment", env)
	}
	var mounts []string
	for _, m := range c.VolumeMounts {
		text := m.MountPath + " from " + m.Name
		if m.SubPath != "" {
			text += ", path " + m.SubPath
		}
		if m.ReadOnly {
			text += " (ro)"
		}
		mounts = append(mounts, text)
	}
	if len(mounts) > 0 {
		out.lines("Mounts", mounts)
	}
}

func (s *session) describeState(out *sheet, name string, state *corev1.ContainerState) {
	switch {
	case state.Running != nil:
		out.field(name, s.paint(green, "Running"))
		out.field("  Started", s.when(state.Running.StartedAt))
	case state.Waiting != nil:
		out.field(name, s.paint(yellow, "Waiting"))
		out.field("  Reason", state.Waiting.Reason)
		if state.Waiting.Message != "" {
			out.field("  Message", brief.Clip(state.Waiting.Message, 500))
		}
	case state.Terminated != nil:
		t := state.Terminated
		out.field(name, s.paint(stateColour(t.Reason), "Terminated"))
		out.field("  Reason", t.Reason)
		if t.Message != "" {
			out.field("  Message", brief.Clip(t.Message, 500))
		}
		out.field("  Exit Code", fmt.Sprint(t.ExitCode))
		out.field("  Started", t.StartedAt.UTC().Format(time.RFC3339))
		out.field("  Finished", t.FinishedAt.UTC().Format(time.RFC3339))
	default:
		out.field(name, "Waiting")
	}
}

// resources writes amounts under a name, and nothing if there are none.
func (s *sheet) resources(name string, list corev1.ResourceList) {
	amounts := map[string]string{}
	for k, q := range list {
		amounts[string(k)] = amount(q)
	}
	if len(amounts) > 0 {
		s.pairs(name, amounts)
	}
}

func amount(q resource.Quantity) string { return q.String() }

// source is where a variable's value comes from; the value itself is not looked up.
func source(from *corev1.EnvVarSource) string {
	switch {
	case from.FieldRef != nil:
		return from.FieldRef.FieldPath
	case from.ResourceFieldRef != nil:
		return from.ResourceFieldRef.Resource
	case from.ConfigMapKeyRef != nil:
		return "key " + from.ConfigMapKeyRef.Key + " of configmap " + from.ConfigMapKeyRef.Name
	case from.SecretKeyRef != nil:
		return "key " + from.SecretKeyRef.Key + " of secret " + from.SecretKeyRef.Name
	}
	return "elsewhere"
}

func toleration(t corev1.Toleration) string {
	text := t.Key
	if t.Value != "" {
		text += "=" + t.Value
	}
	if t.Effect != "" {
		text += ":" + string(t.Effect)
	}
	if t.Operator != "" && t.Operator != corev1.TolerationOpEqual {
		text += " op=" + string(t.Operator)
	}
	if t.TolerationSeconds != nil {
		text += fmt.Sprintf(" for %ds", *t.TolerationSeconds)
	}
	return text
}

// describeVolumes shows each volume's source as it is written in the manifest.
func describeVolumes(out *sheet, volumes []corev1.Volume) {
	if len(volumes) == 0 {
		return
	}
	out.line("Volumes:")
	for _, v := range volumes {
		text := "emptyDir: {}"
		if data, err := json.Marshal(v.VolumeSource); err == nil && string(data) != "{}" {
			if y, err := yaml.JSONToYAML(data); err == nil {
				text = string(y)
			}
		}
		out.line("  %s:", v.Name)
		out.block("    ", text)
	}
}
