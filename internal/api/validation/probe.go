package validation

import (
	"strings"

	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// probes checks a container's three probes.
func probes(c *corev1.Container, path *field.Path) field.ErrorList {
	errs := probe(c.LivenessProbe, path.Child("livenessProbe"))
	errs = append(errs, probe(c.ReadinessProbe, path.Child("readinessProbe"))...)
	errs = append(errs, probe(c.StartupProbe, path.Child("startupProbe"))...)
	errs = append(errs, successOnce(c.LivenessProbe, path.Child("livenessProbe"))...)
	errs = append(errs, successOnce(c.StartupProbe, path.Child("startupProbe"))...)
	if p := c.ReadinessProbe; p != nil && p.TerminationGracePeriodSeconds != nil {
		errs = append(errs, field.Invalid(path.Child("readinessProbe", "terminationGracePeriodSeconds"), *p.TerminationGracePeriodSeconds,
			"must not be set for readinessProbes"))
	}
	return errs
}

func successOnce(p *corev1.Probe, path *field.Path) field.ErrorList {
	if p == nil || p.SuccessThreshold == 1 {
		return nil
	}
	return field.ErrorList{field.Invalid(path.Child("successThreshold"), p.SuccessThreshold, "must be 1")}
}

func probe(p *corev1.Probe, path *field.Path) field.ErrorList {
	if p == nil {
		return nil
	}
	errs := handler(corev1.LifecycleHandler{Exec: p.Exec, HTTPGet: p.HTTPGet, TCPSocket: p.TCPSocket}, p.GRPC, path)
	errs = append(errs, nonNegative(path.Child("initialDelaySeconds"), p.InitialDelaySeconds)...)
	errs = append(errs, nonNegative(path.Child("timeoutSeconds"), p.TimeoutSeconds)...)
	errs = append(errs, nonNegative(path.Child("periodSeconds"), p.PeriodSeconds)...)
	errs = append(errs, nonNegative(path.Child("successThreshold"), p.SuccessThreshold)...)
	errs = append(errs, nonNegative(path.Child("failureThreshold"), p.FailureThreshold)...)
	if g := p.TerminationGracePeriodSeconds; g != nil && *g <= 0 {
		errs = append(errs, field.Invalid(path.Child("terminationGracePeriodSeconds"), *g, "must be greater than 0"))
	}
	return errs
}

func lifecycle(l *corev1.Lifecycle, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if l.PostStart != nil {
		errs = append(errs, handler(*l.PostStart, nil, path.Child("postStart"))...)
	}
	if l.PreStop != nil {
		errs = append(errs, handler(*l.PreStop, nil, path.Child("preStop"))...)
	}
	if s := l.StopSignal; s != nil && unix.SignalNum(string(*s)) == 0 &&
		!strings.HasPrefix(string(*s), "SIGRTMIN") && !strings.HasPrefix(string(*s), "SIGRTMAX") {
		errs = append(errs, field.Invalid(path.Child("stopSignal"), *s, "must be the name of a signal, as SIGTERM"))
	}
	return errs
}

// handler checks the action of a probe or a hook: there must be exactly one.
func handler(h corev1.LifecycleHandler, grpc *corev1.GRPCAction, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	kinds := 0
	if h.Exec != nil {
		kinds++
		if len(h.Exec.Command) == 0 {
			errs = append(errs, field.Required(path.Child("exec", "command"), ""))
		}
	}
	if g := h.HTTPGet; g != nil {
		kinds++
		at := path.Child("httpGet")
		errs = append(errs, required(at.Child("path"), g.Path)...)
		errs = append(errs, portNumOrName(g.Port, at.Child("port"))...)
		errs = append(errs, oneOf(at.Child("scheme"), g.Scheme, corev1.URISchemeHTTP, corev1.URISchemeHTTPS)...)
		errs = append(errs, optional(at.Child("protocol"), g.Protocol, corev1.HTTPProtocolHTTP1, corev1.HTTPProtocolHTTP2)...)
		if p := g.Protocol; p != nil && *p == corev1.HTTPProtocolHTTP2 && g.Scheme == corev1.URISchemeHTTPS {
			errs = append(errs, field.Invalid(at.Child("protocol"), *p, "must be used with scheme HTTP: HTTP/2 is served without TLS only"))
		}
		for i, header := range g.HTTPHeaders {
			errs = append(errs, say(at.Child("httpHeaders").Index(i).Child("name"), header.Name, validation.IsHTTPHeaderName(header.Name))...)
		}
	}
	if t := h.TCPSocket; t != nil {
		kinds++
		errs = append(errs, portNumOrName(t.Port, path.Child("tcpSocket", "port"))...)
	}
	if grpc != nil {
		kinds++
		errs = append(errs, say(path.Child("grpc", "port"), grpc.Port, validation.IsValidPortNum(int(grpc.Port)))...)
		errs = append(errs, optional(path.Child("grpc", "mode"), grpc.Mode, corev1.GRPCProbeModePlaintext, corev1.GRPCProbeModeTLS)...)
	}
	if s := h.Sleep; s != nil {
		kinds++
		errs = append(errs, nonNegative(path.Child("sleep", "seconds"), s.Seconds)...)
	}
	switch {
	case kinds == 0:
		errs = append(errs, field.Required(path, "must specify a handler type"))
	case kinds > 1:
		errs = append(errs, field.Forbidden(path, "may not specify more than 1 handler type"))
	}
	return errs
}

func portNumOrName(port intstr.IntOrString, path *field.Path) field.ErrorList {
	if port.Type == intstr.String {
		return say(path, port.StrVal, validation.IsValidPortName(port.StrVal))
	}
	return say(path, port.IntVal, validation.IsValidPortNum(int(port.IntVal)))
}
