package defaults

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// container sets the defaults of one container of a pod.
func container(c *corev1.Container, hostNetwork bool) {
	if c.ImagePullPolicy == "" {
		c.ImagePullPolicy = PullPolicy(c.Image)
	}
	if c.TerminationMessagePath == "" {
		c.TerminationMessagePath = corev1.TerminationMessagePathDefault
	}
	if c.TerminationMessagePolicy == "" {
		c.TerminationMessagePolicy = corev1.TerminationMessageReadFile
	}
	for i := range c.Ports {
		p := &c.Ports[i]
		if p.Protocol == "" {
			p.Protocol = corev1.ProtocolTCP
		}
		if hostNetwork && p.HostPort == 0 {
			p.HostPort = p.ContainerPort
		}
	}
	for i := range c.Env {
		if c.Env[i].ValueFrom != nil {
			fieldRef(c.Env[i].ValueFrom.FieldRef)
		}
	}
	requests(&c.Resources)
	probe(c.LivenessProbe)
	probe(c.ReadinessProbe)
	probe(c.StartupProbe)
	if l := c.Lifecycle; l != nil {
		for _, h := range []*corev1.LifecycleHandler{l.PostStart, l.PreStop} {
			if h != nil {
				httpGet(h.HTTPGet)
			}
		}
	}
}

// PullPolicy returns when an image is pulled if the container does not say: always for the tag latest or no tag,
// otherwise only if it is not present.
func PullPolicy(image string) corev1.PullPolicy {
	name, _, digest := strings.Cut(image, "@")
	tag := ""
	if colon := strings.LastIndexByte(name, ':'); colon > strings.LastIndexByte(name, '/') {
		tag = name[colon+1:]
	}
	if tag == "latest" || tag == "" && !digest {
		return corev1.PullAlways
	}
	return corev1.PullIfNotPresent
}

// requests sets each missing request to the limit of that resource.
func requests(r *corev1.ResourceRequirements) {
	for name, limit := range r.Limits {
		if _, given := r.Requests[name]; given {
			continue
		}
		if r.Requests == nil {
			r.Requests = corev1.ResourceList{}
		}
		r.Requests[name] = limit.DeepCopy()
	}
}

func probe(p *corev1.Probe) {
	if p == nil {
		return
	}
	for field, def := range map[*int32]int32{&p.TimeoutSeconds: 1, &p.PeriodSeconds: 10, &p.SuccessThreshold: 1, &p.FailureThreshold: 3} {
		if *field == 0 {
			*field = def
		}
	}
	httpGet(p.HTTPGet)
	if p.GRPC != nil && p.GRPC.Service == nil {
		p.GRPC.Service = new("")
	}
}

func httpGet(h *corev1.HTTPGetAction) {
	if h == nil {
		return
	}
	if h.Path == "" {
		h.Path = "/"
	}
	if h.Scheme == "" {
		h.Scheme = corev1.URISchemeHTTP
	}
}
