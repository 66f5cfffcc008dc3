package stream

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"

	"minik8s/internal/api"
	"minik8s/internal/api/podspec"
	"minik8s/internal/client"
	"minik8s/internal/ctl/brief"
	"minik8s/internal/ctl/exit"
	"minik8s/internal/ctl/session"
)

// Wanted is one argument [LOCAL:]PORT. Its port is the Service's, if a Service is named, or else the pod's.
type Wanted struct {
	local int // negative: the same as the port
	port  intstr.IntOrString
}

// ParseWanted reads [LOCAL:]PORT, where PORT is a number or a port's name.
func ParseWanted(arg string) (Wanted, error) {
	bad := exit.Usagef("%q is no [LOCAL:]PORT: 8080, 8080:80, 8080:http or :80 (any free port)", arg)
	local, far, both := strings.Cut(arg, ":")
	w := Wanted{local: -1}
	if !both {
		far = local
	} else if local == "" {
		w.local = 0
	} else if n, err := strconv.ParseUint(local, 10, 16); err == nil {
		w.local = int(n)
	} else {
		return w, bad
	}
	w.port = intstr.Parse(far)
	switch {
	case far == "" || strings.Contains(far, ":"):
		return w, bad
	case w.port.Type == intstr.Int && (w.port.IntVal < 1 || w.port.IntVal > 65535):
		return w, bad
	}
	return w, nil
}

// Pair finds the ports that are meant. svc is nil unless a Service was named.
func (w Wanted) Pair(svc *corev1.Service, pod *corev1.Pod) (PortPair, error) {
	near, far := w.port, w.port
	if svc != nil {
		p, err := servicePort(svc, w.port)
		if err != nil {
			return PortPair{}, err
		}
		near, far = intstr.FromInt32(p.Port), p.TargetPort
		if far == (intstr.IntOrString{}) || svc.Spec.ClusterIP == corev1.ClusterIPNone && far.Type == intstr.Int {
			far = near // nothing translates the ports of a headless Service
		}
	}
	remote := far.IntVal
	if far.Type == intstr.String {
		remote = podspec.NamedPort(pod, far.StrVal, corev1.ProtocolTCP)
	}
	if remote == 0 {
		return PortPair{}, exit.Usagef("no container of pod %s has a TCP port with the name %s", pod.Name, far.StrVal)
	}
	pair := PortPair{Local: w.local, Remote: int(remote)}
	if pair.Local < 0 {
		pair.Local = pair.Remote
		if near.Type == intstr.Int {
			pair.Local = int(near.IntVal)
		}
	}
	return pair, nil
}

func servicePort(svc *corev1.Service, want intstr.IntOrString) (*corev1.ServicePort, error) {
	var have []string
	for i := range svc.Spec.Ports {
		p := &svc.Spec.Ports[i]
		have = append(have, strings.TrimSpace(fmt.Sprintf("%d %s", p.Port, p.Name)))
		if want.Type == intstr.Int && p.Port == want.IntVal || want.Type == intstr.String && p.Name == want.StrVal {
			if p.Protocol == corev1.ProtocolTCP || p.Protocol == "" {
				return p, nil
			}
		}
	}
	return nil, exit.Usagef("service %s has no TCP port %s; it has %s", svc.Name, want.String(), strings.Join(have, ", "))
}

// PodOf returns the pod itself, or a pod of a Service or a workload: one that is ready, if there is one, and of these the
// oldest. It fails if none runs.
func PodOf(ctx context.Context, s *session.Session, obj api.Object) (*corev1.Pod, error) {
	if pod, ok := obj.(*corev1.Pod); ok {
		return pod, nil
	}
	selector, err := selectorOf(obj)
	if err != nil {
		return nil, err
	}
	pods, _, err := client.All[*corev1.Pod](ctx, s.API, api.Pods, client.ListOptions{Namespace: obj.GetNamespace(), Labels: selector})
	if err != nil {
		return nil, err
	}
	var best *corev1.Pod
	for _, p := range pods {
		if p.Status.Phase == corev1.PodRunning && p.DeletionTimestamp == nil && (best == nil || better(p, best)) {
			best = p
		}
	}
	if best == nil {
		return nil, exit.Failf(exit.Failed, "none of the %d pods of %s runs\nminik8sd ctl why %s %s%s tells more", len(pods), brief.RefOf(obj),
			api.KindOf(obj).Singular, obj.GetName(), brief.Namespace(obj.GetNamespace()))
	}
	return best, nil
}

func better(a, b *corev1.Pod) bool {
	ready := func(p *corev1.Pod) bool {
		c := brief.PodCondition(p, corev1.PodReady)
		return c != nil && c.Status == corev1.ConditionTrue
	}
	if ready(a) != ready(b) {
		return ready(a)
	}
	return a.CreationTimestamp.Before(&b.CreationTimestamp)
}

// Kinds are those that have pods to which ports can lead.
var Kinds = []*api.Kind{api.Pods, api.Services, api.Deployments, api.ReplicaSets, api.DaemonSets, api.ReplicationControllers, api.Jobs}

func selectorOf(obj api.Object) (labels.Selector, error) {
	of := func(s *metav1.LabelSelector) (labels.Selector, error) { return metav1.LabelSelectorAsSelector(s) }
	switch o := obj.(type) {
	case *corev1.Service:
		if len(o.Spec.Selector) == 0 {
			return nil, exit.Usagef("service %s selects no pods by labels; name a pod", o.Name)
		}
		return labels.SelectorFromSet(o.Spec.Selector), nil
	case *corev1.ReplicationController:
		return labels.SelectorFromSet(o.Spec.Selector), nil
	case *appsv1.Deployment:
		return of(o.Spec.Selector)
	case *appsv1.ReplicaSet:
		return of(o.Spec.Selector)
	case *appsv1.DaemonSet:
		return of(o.Spec.Selector)
	case *batchv1.Job:
		return of(o.Spec.Selector)
	}
	return nil, exit.Usagef("%s has no pods", brief.RefOf(obj))
}
