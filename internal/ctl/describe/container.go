package describe

import (
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"minik8s/internal/ctl/brief"
	"minik8s/internal/ctl/console"
	"minik8s/internal/ctl/session"
)

func writeContainers(s *session.Session, out *sheet, containers []corev1.Container, statuses []corev1.ContainerStatus) {
	byName := map[string]*corev1.ContainerStatus{}
	for i := range statuses {
		byName[statuses[i].Name] = &statuses[i]
	}
	for i := range containers {
		out.indented("  ", func() {
			out.line("%s:", containers[i].Name)
			out.indented("  ", func() { writeContainer(s, out, &containers[i], byName[containers[i].Name]) })
		})
	}
}

func writeContainer(s *session.Session, out *sheet, c *corev1.Container, status *corev1.ContainerStatus) {
	if status != nil {
		out.field("Container ID", status.ContainerID)
	}
	out.field("Image", c.Image)
	if status != nil && status.ImageID != "" {
		out.field("Image ID", status.ImageID)
	}
	if ports := portsOf(c); len(ports) > 0 {
		out.field("Ports", strings.Join(ports, ", "))
	}
	if len(c.Command) > 0 {
		out.field("Command", brief.Quoted(c.Command))
	}
	if len(c.Args) > 0 {
		out.field("Args", brief.Quoted(c.Args))
	}
	if status != nil {
		writeState(s, out, "State", &status.State)
		if status.LastTerminationState != (corev1.ContainerState{}) {
			writeState(s, out, "Last State", &status.LastTerminationState)
		}
		out.field("Ready", fmt.Sprint(status.Ready))
		out.field("Restart Count", fmt.Sprint(status.RestartCount))
	}
	out.resources("Requests", c.Resources.Requests)
	out.resources("Limits", c.Resources.Limits)
	if env := environmentOf(c); len(env) > 0 {
		out.lines("Environment", env)
	}
	if mounts := mountsOf(c); len(mounts) > 0 {
		out.lines("Mounts", mounts)
	}
}

func portsOf(c *corev1.Container) []string {
	var ports []string
	for _, p := range c.Ports {
		text := fmt.Sprintf("%d/%s", p.ContainerPort, p.Protocol)
		if p.HostPort != 0 {
			text += fmt.Sprintf(" (host port %d)", p.HostPort)
		}
		ports = append(ports, text)
	}
	return ports
}

func environmentOf(c *corev1.Container) []string {
	var env []string
	for _, e := range c.Env {
		if e.ValueFrom != nil {
			env = append(env, e.Name+" from "+source(e.ValueFrom))
		} else {
			env = append(env, e.Name+"="+e.Value)
		}
	}
	return env
}

func mountsOf(c *corev1.Container) []string {
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
	return mounts
}

func writeState(s *session.Session, out *sheet, name string, state *corev1.ContainerState) {
	switch {
	case state.Running != nil:
		out.field(name, s.Paint(console.Green, "Running"))
		out.field("  Started", s.When(state.Running.StartedAt))
	case state.Waiting != nil:
		out.field(name, s.Paint(console.Yellow, "Waiting"))
		out.field("  Reason", state.Waiting.Reason)
		if state.Waiting.Message != "" {
			out.field("  Message", brief.Clip(state.Waiting.Message, 500))
		}
	case state.Terminated != nil:
		t := state.Terminated
		out.field(name, s.Paint(console.StateColour(t.Reason), "Terminated"))
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

// source returns where a variable's value comes from. It does not look up the value.
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
