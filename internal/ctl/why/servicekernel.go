package why

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"

	"minik8s/internal/ctl/brief"
	"minik8s/internal/ctl/ways"
	"minik8s/internal/proxy/report"
)

// shownNodes is how many nodes are named that agree, and how many that do not.
const shownNodes = 5

// kernels adds what the nodes' kernels do with the Service, and where that is not what the API says.
func (s *situation) kernels(v *Explanation, svc *corev1.Service) {
	var agree, lines []string
	for _, n := range s.service.nodes {
		faults := s.faults(svc, n)
		if len(faults) == 0 {
			agree = append(agree, n.Node)
			continue
		}
		v.Good = v.Good && n.Err != nil // what cannot be asked may be well
		for _, f := range faults {
			lines = append(lines, n.Node+": "+f)
		}
		v.try("why node %s", n.Node)
	}
	if len(agree) > 0 {
		lines = append([]string{fmt.Sprintf("agrees on %s", strings.Join(few(agree, shownNodes), ", "))}, lines...)
	}
	if len(lines) > 1 || len(agree) == 0 && len(lines) > 0 {
		v.because("not every node's rules are known to lead where they should")
	}
	lines = few(lines, 4*shownNodes)
	if mute := s.service.mute; len(mute) > 0 {
		lines = append(lines, "not asked: "+strings.Join(few(mute, shownNodes), ", ")+" (there is no kubelet)")
	}
	v.fact("Kernel", lines)
}

// faults is what is wrong with a node's rules; empty: nothing.
func (s *situation) faults(svc *corev1.Service, n ways.OfNode) (out []string) {
	switch {
	case n.Err != nil:
		return []string{"cannot be asked: " + brief.Clip(n.Err.Error(), 200)}
	case !n.Known:
		return []string{n.Why}
	}
	wanted := s.readyPorts(svc)
	for _, c := range n.Calls {
		call := fmt.Sprintf("%s/%s, called from %s", c.At, c.Protocol, c.From)
		switch {
		case c.Error != "":
			out = append(out, fmt.Sprintf("%s: %s", call, c.Error))
		case !c.Agrees():
			out = append(out, fmt.Sprintf("%s: the kernel leads it to %s, the proxy wants %s", call, outcomeText(c.Kernel), outcomeText(c.Wanted)))
		}
		// Policies and hints may leave endpoints out; none may lead elsewhere. Ending pods serve while no other does.
		for _, e := range c.Wanted.Endpoints {
			if all := wanted[portKey{c.Protocol, c.At.Port(), c.NodePort}]; len(all) > 0 && !slices.Contains(all, e) {
				out = append(out, fmt.Sprintf("%s: it still leads to %s, which is no endpoint any more", call, e))
			}
		}
		if c.At.Addr().String() == svc.Spec.ClusterIP && c.From == report.FromPods && narrow(svc, s.service.slices) == "" {
			for _, e := range wanted[portKey{c.Protocol, c.At.Port(), false}] {
				if !slices.Contains(c.Wanted.Endpoints, e) {
					out = append(out, fmt.Sprintf("%s: it has not heard of the endpoint %s yet", call, e))
				}
			}
		}
	}
	return out
}

// portKey is how a Service's port is called.
type portKey struct {
	protocol string
	port     uint16
	nodePort bool
}

// readyPorts are the endpoints that the API has, by how they are called.
func (s *situation) readyPorts(svc *corev1.Service) map[portKey][]netip.AddrPort {
	out := map[portKey][]netip.AddrPort{}
	s.eachReady(svc, func(_ *discoveryv1.Endpoint, p corev1.ServicePort, at string) {
		if e, err := netip.ParseAddrPort(at); err == nil && e.Addr().Is4() {
			for _, k := range []portKey{{string(p.Protocol), uint16(p.Port), false}, {string(p.Protocol), uint16(p.NodePort), true}} {
				out[k] = append(out[k], e)
			}
		}
	})
	return out
}

// narrow says what leaves endpoints out on some nodes; empty: nothing does.
func narrow(svc *corev1.Service, list []*discoveryv1.EndpointSlice) string {
	if p := svc.Spec.InternalTrafficPolicy; p != nil && *p == corev1.ServiceInternalTrafficPolicyLocal {
		return "internalTrafficPolicy"
	}
	for _, s := range list {
		if slices.ContainsFunc(s.Endpoints, func(e discoveryv1.Endpoint) bool { return e.Hints != nil }) {
			return "hints"
		}
	}
	return ""
}

func outcomeText(o report.Outcome) string {
	var out []string
	for _, e := range o.Endpoints {
		out = append(out, e.String())
	}
	if out = append(out, o.Otherwise...); len(out) == 0 {
		return "nothing"
	}
	return strings.Join(few(out, 10), ", ")
}
