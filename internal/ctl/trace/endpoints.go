package trace

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/labels"

	"minik8s/internal/api"
	"minik8s/internal/client"
	"minik8s/internal/ctl/brief"
	"minik8s/internal/ctl/ways"
	"minik8s/internal/proxy/report"
)

// maxTried is how many endpoints are tried; of the others only their addresses are shown.
const maxTried = 8

// endpoint is one to which connections may go.
type endpoint struct {
	at  netip.AddrPort
	pod *corev1.Pod // nil: it is no pod
	// listens is what a connection from within the endpoint's own pod came to, alone the same to its loopback address, and
	// reached one from the pod that calls. Nil: it was not tried.
	listens, alone, reached *report.Attempt
	mute                    error // why the endpoint's own node could not be asked
}

// endpoints finds out about those to which the rules lead, or for a headless Service about all that are ready.
func (t *tracing) endpoints(ctx context.Context) bool {
	if t.svc.Labels[ways.ProxyName] != "" { // whoever answers there may not ask for any
		return true
	}
	list, err := slicesOf(ctx, t.api, t.svc)
	if err != nil {
		return t.step("endpoints", Unknown, brief.Clip(err.Error(), 200))
	}
	pods := podsBy(list)
	if len(t.candidates) == 0 { // it is headless, or the rules lead nowhere
		t.candidates = ready(list, t.port)
	}
	for _, at := range t.candidates {
		e := endpoint{at: at}
		if name, ok := pods[at.Addr()]; ok {
			if p, err := client.Get[*corev1.Pod](ctx, t.api, client.Key{Kind: api.Pods, Namespace: t.svc.Namespace, Name: name}); err == nil {
				e.pod = p
			}
		}
		t.found = append(t.found, e)
	}
	if len(t.found) == 0 {
		t.try("why service %s%s", t.svc.Name, brief.Namespace(t.svc.Namespace))
		return t.step("endpoints", Stops, "there are none that are ready")
	}
	if t.protocol() == string(corev1.ProtocolTCP) {
		t.tryAll(ctx)
	}
	var lines []string
	state := Passes
	for i := range t.found {
		if i == maxTried {
			lines = append(lines, fmt.Sprintf("and %d more, which were not tried", len(t.found)-i))
			break
		}
		text, stops := t.describe(&t.found[i])
		lines = append(lines, text)
		if stops {
			state = Stops
		}
	}
	return t.step("endpoints", state, lines...)
}

func (t *tracing) tryAll(ctx context.Context) {
	var wg sync.WaitGroup
	attempt := func(into **report.Attempt, pod *corev1.Pod, to netip.AddrPort) error {
		a, err := ways.Dial(ctx, t.api, pod, to)
		if err == nil {
			*into = &a
		}
		return err
	}
	for i := range t.found[:min(len(t.found), maxTried)] {
		e := &t.found[i]
		wg.Go(func() { attempt(&e.reached, t.pod, e.at) }) //nolint:errcheck // the step connection says it
		if e.pod != nil && e.pod.Spec.NodeName != "" {
			wg.Go(func() {
				e.mute = attempt(&e.listens, e.pod, e.at)
				if e.listens != nil && e.listens.Refused {
					attempt(&e.alone, e.pod, netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), e.at.Port())) //nolint:errcheck // it is only a better reason
				}
			})
		}
	}
	wg.Wait()
}

// describe says all of an endpoint in a line, and whether connections end there.
func (t *tracing) describe(e *endpoint) (text string, stops bool) {
	words := []string{e.at.String()}
	var policies []string
	if e.pod == nil {
		words = append(words, "no pod of the namespace")
	} else {
		words = append(words, fmt.Sprintf("pod %s on %s", e.pod.Name, e.pod.Spec.NodeName))
		if policies = ways.Policies(t.policies, e.pod, networkingv1.PolicyTypeIngress); len(policies) > 0 {
			words = append(words, "policies that say who may call it: "+strings.Join(policies, ", "))
		}
	}
	switch {
	case e.listens == nil && e.mute != nil:
		words = append(words, fmt.Sprintf("whether it listens is not known: %s cannot be asked", e.pod.Spec.NodeName))
	case e.listens == nil:
	case e.listens.Done:
		words = append(words, "listens")
	case e.alone != nil && e.alone.Done:
		return strings.Join(append(words, "listens on its loopback address alone, where nobody else reaches it"), "; "), true
	case e.listens.Refused:
		t.try("logs %s%s", e.pod.Name, brief.Namespace(e.pod.Namespace))
		return strings.Join(append(words, fmt.Sprintf("nobody listens on its port %d", e.at.Port())), "; "), true
	default:
		words = append(words, "its own connection to itself: "+failure(*e.listens))
	}
	switch {
	case e.reached == nil:
	case e.reached.Done:
		words = append(words, "reached directly within "+micros(*e.reached))
	default:
		why := "not reached directly: " + failure(*e.reached)
		egress := ways.Policies(t.policies, t.pod, networkingv1.PolicyTypeEgress)
		switch {
		case len(policies)+len(egress) > 0:
			why += "; do the policies allow it?"
		case e.pod != nil && e.pod.Spec.NodeName != t.pod.Spec.NodeName:
			why += fmt.Sprintf("; is the way from %s to %s open?", t.pod.Spec.NodeName, e.pod.Spec.NodeName)
			t.try("why node %s", e.pod.Spec.NodeName)
		}
		return strings.Join(append(words, why), "; "), true
	}
	return strings.Join(words, "; "), false
}

func slicesOf(ctx context.Context, from Source, svc *corev1.Service) ([]*discoveryv1.EndpointSlice, error) {
	list, _, err := client.All[*discoveryv1.EndpointSlice](ctx, from, api.EndpointSlices, client.ListOptions{Namespace: svc.Namespace,
		Labels: labels.SelectorFromSet(labels.Set{discoveryv1.LabelServiceName: svc.Name})})
	return list, err
}

// podsBy are the names of the pods by their addresses.
func podsBy(list []*discoveryv1.EndpointSlice) map[netip.Addr]string {
	out := map[netip.Addr]string{}
	for _, s := range list {
		for _, e := range s.Endpoints {
			if e.TargetRef == nil || e.TargetRef.Kind != "Pod" || len(e.Addresses) == 0 {
				continue
			}
			if a, err := netip.ParseAddr(e.Addresses[0]); err == nil {
				out[a] = e.TargetRef.Name
			}
		}
	}
	return out
}

// ready are the endpoints of a port that are ready.
func ready(list []*discoveryv1.EndpointSlice, p *corev1.ServicePort) (out []netip.AddrPort) {
	for _, s := range list {
		i := slices.IndexFunc(s.Ports, func(q discoveryv1.EndpointPort) bool {
			return q.Port != nil && (q.Name == nil && p.Name == "" || q.Name != nil && *q.Name == p.Name)
		})
		if i < 0 {
			continue
		}
		for _, e := range s.Endpoints {
			if len(e.Addresses) == 0 || e.Conditions.Ready != nil && !*e.Conditions.Ready {
				continue
			}
			if a, err := netip.ParseAddr(e.Addresses[0]); err == nil && a.Is4() {
				out = append(out, netip.AddrPortFrom(a, uint16(*s.Ports[i].Port)))
			}
		}
	}
	slices.SortFunc(out, netip.AddrPort.Compare)
	return slices.Compact(out)
}
