package why

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"minik8s/internal/api/podspec"
	"minik8s/internal/api/table"
	"minik8s/internal/ctl/brief"
)

// notEndpoint says why a pod that is selected gets no connections.
func (s *situation) notEndpoint(svc *corev1.Service, p *corev1.Pod) string {
	switch {
	case p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed:
		return "has ended: " + table.PodStatus(p)
	case p.DeletionTimestamp != nil:
		return "is being deleted; it serves on only while no other pod does"
	case p.Spec.NodeName == "":
		return "has no node yet"
	case p.Status.PodIP == "":
		return "has no address yet: " + table.PodStatus(p)
	}
	if ports := s.missingPorts(svc, p); ports != "" && len(svc.Spec.Ports) == strings.Count(ports, ";")+1 {
		return ports
	}
	if !isPodReady(p) {
		return "is not ready: " + s.notReady(p)
	}
	return "is ready, and the endpoints do not name it yet; is a master running?"
}

// notReady says which containers are not ready, and what their probes say.
func (s *situation) notReady(p *corev1.Pod) string {
	var out []string
	for _, status := range slices.Concat(p.Status.InitContainerStatuses, p.Status.ContainerStatuses) {
		c := podspec.Container(p, status.Name)
		init := podspec.InitContainer(p, status.Name) != nil
		switch w, t := status.State.Waiting, status.State.Terminated; {
		case status.Ready || c == nil || init && t != nil && t.ExitCode == 0:
		case w != nil:
			out = append(out, fmt.Sprintf("container %s waits: %s", status.Name, w.Reason))
		case t != nil:
			out = append(out, fmt.Sprintf("container %s %s", status.Name, ended(t)))
		case status.Started != nil && !*status.Started && c.StartupProbe != nil:
			out = append(out, fmt.Sprintf("the startup probe of container %s has not succeeded yet", status.Name))
		case c.ReadinessProbe != nil:
			out = append(out, fmt.Sprintf("the readiness probe of container %s (%s) does not succeed", status.Name, probeText(c.ReadinessProbe)))
		}
	}
	for _, g := range p.Spec.ReadinessGates {
		if c := brief.PodCondition(p, g.ConditionType); c == nil || c.Status != corev1.ConditionTrue {
			out = append(out, fmt.Sprintf("its readiness gate %s is not true", g.ConditionType))
		}
	}
	if e := s.service.unhealthy[p.Name]; e != nil {
		out = append(out, brief.Clip(e.Message, 200))
	}
	if len(out) == 0 {
		return table.PodStatus(p)
	}
	return strings.Join(out, "; ")
}

func probeText(p *corev1.Probe) string {
	switch {
	case p.HTTPGet != nil:
		return "GET :" + p.HTTPGet.Port.String() + p.HTTPGet.Path
	case p.TCPSocket != nil:
		return "TCP port " + p.TCPSocket.Port.String()
	case p.GRPC != nil:
		return fmt.Sprintf("gRPC port %d", p.GRPC.Port)
	case p.Exec != nil:
		return brief.Clip(strings.Join(p.Exec.Command, " "), 60)
	}
	return "probe"
}

// missingPorts names the Service's ports that a pod does not have: their targets are names, and no container has them.
func (s *situation) missingPorts(svc *corev1.Service, p *corev1.Pod) string {
	var out []string
	for i := range svc.Spec.Ports {
		port := &svc.Spec.Ports[i]
		if podspec.TargetPort(port, p) == 0 {
			out = append(out, fmt.Sprintf("no container has a %s port named %q, the targetPort of %d (it has %s)", port.Protocol, port.TargetPort.StrVal, port.Port, portsOf(p)))
		}
	}
	return strings.Join(out, "; ")
}

func portsOf(p *corev1.Pod) string {
	var out []string
	for _, c := range podspec.Containers(p) {
		for _, have := range c.Ports {
			out = append(out, strings.TrimSpace(fmt.Sprintf("%s %d/%s", have.Name, have.ContainerPort, have.Protocol)))
		}
	}
	if len(out) == 0 {
		return "none declared"
	}
	return strings.Join(out, ", ")
}

// portRemarks says where a target's number is none that the pods declare. That is no mistake by itself.
func (s *situation) portRemarks(v *Explanation, svc *corev1.Service) {
	for _, port := range svc.Spec.Ports {
		if port.TargetPort.Type != intstr.Int {
			continue
		}
		for _, p := range s.service.pods {
			if !selects(svc, p) {
				continue
			}
			declared := 0
			found := slices.ContainsFunc(podspec.Containers(p), func(c *corev1.Container) bool {
				declared += len(c.Ports)
				return slices.ContainsFunc(c.Ports, func(have corev1.ContainerPort) bool { return have.ContainerPort == port.TargetPort.IntVal })
			})
			if declared > 0 && !found {
				v.because("its port %d leads to port %d of the pods, which %s does not declare (%s); is that right?", port.Port, port.TargetPort.IntVal, p.Name, portsOf(p))
			}
			break // the others are alike
		}
	}
}

// nearMisses names pods that may have been meant: with one label that differs, or in other namespaces.
func (s *situation) nearMisses(v *Explanation, svc *corev1.Service) {
	const most = 3
	var near []string
	for _, p := range s.service.pods {
		differ, present := []string{}, false
		for k, want := range svc.Spec.Selector {
			if have, ok := p.Labels[k]; !ok {
				differ = append(differ, fmt.Sprintf("pod %s has no label %s; wanted: %s=%s", p.Name, k, k, want))
			} else if have != want {
				present = true
				differ = append(differ, fmt.Sprintf("pod %s has %s=%s; wanted: %s=%s", p.Name, k, have, k, want))
			}
		}
		if len(differ) == 1 && (present || len(svc.Spec.Selector) > 1) { // one label out of one: only with another value
			near = append(near, differ[0])
		}
	}
	slices.Sort(near)
	v.Why = append(v.Why, few(near, most)...)
	spaces := map[string]int{}
	for _, p := range s.service.alike {
		spaces[p.Namespace]++
	}
	for _, p := range s.service.alike {
		if n := spaces[p.Namespace]; n > 0 {
			v.because("namespace %s has %d pods with these labels; a service leads to those of its own namespace alone", p.Namespace, n)
			delete(spaces, p.Namespace)
		}
	}
}
