package expose

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"

	"minik8s/internal/api"
	"minik8s/internal/client"
	"minik8s/internal/ctl/brief"
	"minik8s/internal/ctl/exit"
	"minik8s/internal/ctl/session"
)

// Options are what the Service is to be, where that does not follow from the object.
type Options struct {
	Name, Type, ClusterIP, ExternalIP, LoadBalancerIP string
	// Ports has numbers separated by commas; empty: those that the containers declare.
	Ports      string
	TargetPort string
	Protocol   string
	Selector   string
	Labels     string
	Affinity   string
	DryRun     bool
}

// Kinds are those that can be exposed.
var Kinds = []*api.Kind{api.Pods, api.Services, api.Deployments, api.ReplicaSets, api.ReplicationControllers}

// Make returns the Service for an object. The error is a wrong usage: it says what is missing.
func Make(obj api.Object, o Options) (*corev1.Service, error) {
	selector, found := partsOf(obj)
	svc := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: obj.GetNamespace(), Name: o.Name, Labels: obj.GetLabels()},
		Spec: corev1.ServiceSpec{Selector: selector, Type: corev1.ServiceType(o.Type), ClusterIP: o.ClusterIP,
			LoadBalancerIP: o.LoadBalancerIP, SessionAffinity: corev1.ServiceAffinity(o.Affinity)}} //nolint:staticcheck // kubectl has it, too
	if svc.Name == "" {
		svc.Name = obj.GetName()
	}
	if o.ExternalIP != "" {
		svc.Spec.ExternalIPs = strings.Split(o.ExternalIP, ",")
	}
	var err error
	if o.Selector != "" {
		if svc.Spec.Selector, err = labels.ConvertSelectorToLabelsMap(o.Selector); err != nil {
			return nil, exit.Usagef("--selector: %v; expected KEY=VALUE,...", err)
		}
	}
	if o.Labels != "" {
		if svc.Labels, err = labels.ConvertSelectorToLabelsMap(o.Labels); err != nil {
			return nil, exit.Usagef("--labels: %v; expected KEY=VALUE,...", err)
		}
	}
	if len(svc.Spec.Selector) == 0 {
		return nil, exit.Usagef("%s has no labels by which its pods could be found: give some with --selector KEY=VALUE", brief.RefOf(obj))
	}
	if svc.Spec.Ports, err = ports(found, o); err != nil {
		return nil, err
	}
	if len(svc.Spec.Ports) == 0 {
		return nil, exit.Usagef("%s declares no ports: give one with --port", brief.RefOf(obj))
	}
	return svc, nil
}

// partsOf are the labels of an object's pods, and the ports that they declare.
func partsOf(obj api.Object) (selector map[string]string, ports []corev1.ServicePort) {
	template := func(s *metav1.LabelSelector, t *corev1.PodSpec) (map[string]string, []corev1.ServicePort) {
		if s == nil || len(s.MatchExpressions) > 0 { // a Service has no expressions
			return nil, declared(t)
		}
		return s.MatchLabels, declared(t)
	}
	switch o := obj.(type) {
	case *corev1.Pod:
		return o.Labels, declared(&o.Spec)
	case *corev1.Service:
		return o.Spec.Selector, o.Spec.Ports
	case *appsv1.Deployment:
		return template(o.Spec.Selector, &o.Spec.Template.Spec)
	case *appsv1.ReplicaSet:
		return template(o.Spec.Selector, &o.Spec.Template.Spec)
	case *corev1.ReplicationController:
		if o.Spec.Template != nil {
			return o.Spec.Selector, declared(&o.Spec.Template.Spec)
		}
	}
	return nil, nil
}

func declared(spec *corev1.PodSpec) []corev1.ServicePort {
	var out []corev1.ServicePort
	for _, c := range spec.Containers {
		for _, p := range c.Ports {
			out = append(out, corev1.ServicePort{Port: p.ContainerPort, Protocol: p.Protocol})
		}
	}
	return out
}

func ports(found []corev1.ServicePort, o Options) ([]corev1.ServicePort, error) {
	var out []corev1.ServicePort
	for _, p := range found {
		p.NodePort = 0
		out = append(out, p)
	}
	if o.Ports != "" {
		out = nil
		for word := range strings.SplitSeq(o.Ports, ",") {
			n, err := strconv.ParseUint(strings.TrimSpace(word), 10, 16)
			if err != nil || n == 0 {
				return nil, exit.Usagef("--port: %q: expected a number from 1 to 65535", word)
			}
			p := corev1.ServicePort{Port: int32(n)}
			if i := slices.IndexFunc(found, func(f corev1.ServicePort) bool { return f.Port == p.Port }); i >= 0 {
				p.Protocol = found[i].Protocol
			}
			out = append(out, p)
		}
	}
	for i := range out {
		p := &out[i]
		if o.Protocol != "" {
			p.Protocol = corev1.Protocol(strings.ToUpper(o.Protocol))
		}
		if o.TargetPort != "" {
			p.TargetPort = intstr.Parse(o.TargetPort)
		}
		if p.TargetPort == (intstr.IntOrString{}) {
			p.TargetPort = intstr.FromInt32(p.Port)
		}
		if len(out) > 1 && p.Name == "" {
			p.Name = fmt.Sprint("port-", i+1)
		}
	}
	return out, nil
}

// Expose creates the Service and says so.
func Expose(ctx context.Context, s *session.Session, obj api.Object, o Options) error {
	svc, err := Make(obj, o)
	if err != nil {
		return err
	}
	made, err := s.API.Create(ctx, svc, client.WriteOptions{FieldManager: "kubectl-expose", FieldValidation: "Strict", DryRun: o.DryRun})
	switch {
	case apierrors.IsAlreadyExists(err):
		return exit.Failf(exit.Conflict, "%s exists already: give the new one another name with --name", brief.Ref(api.Services, svc.Name))
	case err != nil:
		return err
	}
	note := "exposed"
	if o.DryRun {
		note += " (dry run)"
	}
	if ip := made.(*corev1.Service).Spec.ClusterIP; ip != "" && ip != corev1.ClusterIPNone {
		note += " at " + ip
	}
	s.Say("%s %s", brief.RefOf(made), note)
	return nil
}
