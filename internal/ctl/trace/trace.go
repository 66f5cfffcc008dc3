package trace

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"minik8s/internal/api"
	"minik8s/internal/api/table"
	"minik8s/internal/client"
	"minik8s/internal/ctl/brief"
	"minik8s/internal/ctl/ways"
	"minik8s/internal/proxy/report"
)

// Source is the API.
type Source interface {
	client.Interface
	ways.API
}

// State is what is known of a step.
type State int

// The states.
const (
	Passes  State = iota
	Stops         // a connection ends here
	Unknown       // nobody can know, or could be asked
)

// Step is one step of the way.
type Step struct {
	Name  string
	State State
	Lines []string
}

// Trace is the way.
type Trace struct {
	// Head is the verdict in a line; Good: the connection was made.
	Head  string
	Good  bool
	Steps []Step
	Next  []string // commands to type
}

// Of follows a connection from a pod to a port of a Service. What cannot be read makes a step unknown, but not the whole.
func Of(ctx context.Context, from Source, pod *corev1.Pod, svc *corev1.Service, port *corev1.ServicePort) Trace {
	t := &tracing{api: from, pod: pod, svc: svc, port: port}
	t.policies, _, _ = client.All[*networkingv1.NetworkPolicy](ctx, from, api.NetworkPolicies, client.ListOptions{})
	for _, step := range []func(context.Context) bool{t.source, t.name, t.address, t.rules, t.endpoints, t.connect} {
		if !step(ctx) {
			break
		}
	}
	t.judge()
	return t.out
}

// tracing is under way.
type tracing struct {
	api  Source
	pod  *corev1.Pod
	svc  *corev1.Service
	port *corev1.ServicePort

	policies   []*networkingv1.NetworkPolicy
	at         netip.AddrPort   // what is called; invalid: the endpoints themselves
	candidates []netip.AddrPort // to which the rules lead, in turns
	found      []endpoint
	tried      *report.Attempt
	out        Trace
}

// step adds a step, and reports whether the way goes on after it.
func (t *tracing) step(name string, state State, lines ...string) bool {
	t.out.Steps = append(t.out.Steps, Step{name, state, lines})
	return true
}

func (t *tracing) try(format string, args ...any) {
	if line := "minik8sd ctl " + fmt.Sprintf(format, args...); !slices.Contains(t.out.Next, line) {
		t.out.Next = append(t.out.Next, line)
	}
}

func (t *tracing) source(context.Context) bool {
	p := t.pod
	text := p.Namespace + "/" + p.Name
	if p.Status.PodIP == "" || p.Spec.NodeName == "" || p.Status.Phase != corev1.PodRunning || p.DeletionTimestamp != nil {
		t.step("pod", Stops, text+" does not run: "+table.PodStatus(p))
		t.try("why pod %s%s", p.Name, brief.Namespace(p.Namespace))
		return false
	}
	lines := []string{fmt.Sprintf("%s, %s on %s", text, p.Status.PodIP, p.Spec.NodeName)}
	if names := ways.Policies(t.policies, p, networkingv1.PolicyTypeEgress); len(names) > 0 {
		lines = append(lines, "policies that say whom it may call: "+strings.Join(names, ", "))
	}
	return t.step("pod", Passes, lines...)
}

// name has the cluster's DNS asked from within the pod.
func (t *tracing) name(ctx context.Context) bool {
	name := t.svc.Name + "." + t.svc.Namespace + ".svc"
	system, err := client.Get[*corev1.Service](ctx, t.api, client.Key{Kind: api.Services, Namespace: metav1.NamespaceSystem, Name: api.DNSService})
	server := netip.Addr{}
	if err == nil {
		server, err = netip.ParseAddr(system.Spec.ClusterIP)
	}
	if err != nil {
		return t.step("name", Unknown, fmt.Sprintf("%s was not asked for: the cluster's DNS has no address (%v)", name, err))
	}
	a, err := ways.Lookup(ctx, t.api, t.pod, name, netip.AddrPortFrom(server, 53))
	var lines []string
	if p := t.pod.Spec.DNSPolicy; p == corev1.DNSDefault || p == corev1.DNSNone || t.pod.Spec.HostNetwork && p != corev1.DNSClusterFirstWithHostNet {
		lines = append(lines, fmt.Sprintf("by its dnsPolicy (%s) the pod itself asks others than the cluster's DNS", p))
	}
	switch {
	case err != nil:
		return t.step("name", Unknown, append(lines, name+" was not asked for: "+brief.Clip(err.Error(), 200))...)
	case !a.Done:
		t.try("why service %s -n %s", api.DNSService, metav1.NamespaceSystem)
		return t.step("name", Stops, append(lines, fmt.Sprintf("%s is not found by %s: %s", name, server, a.Error))...)
	}
	var found []string
	for _, addr := range a.Addresses {
		found = append(found, addr.Unmap().String())
	}
	lines = append(lines, fmt.Sprintf("%s is %s, says %s after %s", strings.TrimSuffix(a.Name, "."), strings.Join(found, ", "), server, micros(a)))
	if ip := t.svc.Spec.ClusterIP; ip != corev1.ClusterIPNone && ip != "" && !slices.Contains(found, ip) {
		return t.step("name", Stops, append(lines, "but the Service's address is "+ip)...)
	}
	return t.step("name", Passes, lines...)
}

func micros(a report.Attempt) string {
	return (time.Duration(a.Micros) * time.Microsecond).Round(10 * time.Microsecond).String()
}

func (t *tracing) address(context.Context) bool {
	switch ip, err := netip.ParseAddr(t.svc.Spec.ClusterIP); {
	case t.svc.Spec.Type == corev1.ServiceTypeExternalName:
		t.step("address", Unknown, fmt.Sprintf("it is another name for %s, and nothing of the cluster is on the way there", t.svc.Spec.ExternalName))
		return false
	case t.svc.Spec.ClusterIP == corev1.ClusterIPNone:
		return t.step("address", Passes, "it is headless: its name leads to the pods' own addresses")
	case err != nil:
		t.step("address", Stops, "it has no virtual IP yet")
		return false
	default:
		t.at = netip.AddrPortFrom(ip, uint16(t.port.Port))
		return t.step("address", Passes, fmt.Sprintf("%s/%s", t.at, t.protocol()))
	}
}

func (t *tracing) protocol() string {
	if t.port.Protocol == "" {
		return string(corev1.ProtocolTCP)
	}
	return string(t.port.Protocol)
}

// rules asks the pod's node what its kernel does with the pod's packet.
func (t *tracing) rules(ctx context.Context) bool {
	if !t.at.IsValid() {
		return true
	}
	name := "rules"
	if who := t.svc.Labels[ways.ProxyName]; who != "" {
		return t.step(name, Passes, fmt.Sprintf("none: by its label %s, %s answers at its address", ways.ProxyName, who))
	}
	from, caller := netip.Addr{}, report.FromHost
	if !t.pod.Spec.HostNetwork {
		from, caller = netip.MustParseAddr(addressOr(t.pod.Status.PodIP)), report.FromPods
	}
	r, err := ways.Service(ctx, t.api, t.pod.Spec.NodeName, t.svc.Namespace, t.svc.Name, from)
	switch {
	case err != nil:
		return t.step(name, Unknown, fmt.Sprintf("%s cannot be asked: %s", t.pod.Spec.NodeName, brief.Clip(err.Error(), 200)))
	case !r.Known:
		t.try("why service %s%s", t.svc.Name, brief.Namespace(t.svc.Namespace))
		return t.step(name, Unknown, fmt.Sprintf("%s: %s", r.Node, r.Why))
	}
	i := slices.IndexFunc(r.Calls, func(c report.Call) bool { return c.At == t.at && c.Protocol == t.protocol() && c.From == caller })
	if i < 0 {
		return t.step(name, Stops, fmt.Sprintf("%s has no rules for %s/%s", r.Node, t.at, t.protocol()))
	}
	c := r.Calls[i]
	lines := append([]string{"in the kernel of " + r.Node + ":"}, c.Way...)
	t.candidates = c.Kernel.Endpoints
	state := Passes
	switch {
	case c.Error != "":
		state, lines = Stops, append(lines, c.Error)
	case len(c.Kernel.Endpoints) == 0:
		state, lines = Stops, append(lines, "there "+strings.Join(c.Kernel.Otherwise, ", "))
	case len(c.Kernel.Otherwise) > 0:
		lines = append(lines, "some connections are "+strings.Join(c.Kernel.Otherwise, ", "))
	}
	if n := len(t.candidates); n > 0 {
		lines = append(lines, fmt.Sprintf("leads to %d endpoints in turn", n))
	}
	if c.Remembered.IsValid() {
		lines = append(lines, "this pod stays with "+c.Remembered.String()+" (sessionAffinity)")
	}
	if !c.Agrees() {
		state = Stops
		lines = append(lines, "that is not what the node's proxy wants")
	}
	if state == Stops {
		t.try("why service %s%s", t.svc.Name, brief.Namespace(t.svc.Namespace))
	}
	return t.step(name, state, lines...)
}

// addressOr is an address, or one that is nobody's.
func addressOr(text string) string {
	if a, err := netip.ParseAddr(text); err == nil && a.Is4() {
		return text
	}
	return "0.0.0.0"
}

// connect has the connection tried.
func (t *tracing) connect(ctx context.Context) bool {
	if t.protocol() != string(corev1.ProtocolTCP) {
		return t.step("connection", Unknown, t.protocol()+" was not tried: without an answer nobody can know whether a datagram has arrived")
	}
	to := t.at
	if !to.IsValid() { // headless: the name leads there
		if len(t.found) == 0 {
			return t.step("connection", Stops, "there is nobody to connect to")
		}
		to = t.found[0].at
	}
	a, err := ways.Dial(ctx, t.api, t.pod, to)
	if err != nil {
		return t.step("connection", Unknown, "it was not tried: "+brief.Clip(err.Error(), 200))
	}
	t.tried = &a
	if !a.Done {
		return t.step("connection", Stops, fmt.Sprintf("to %s: %s", to, failure(a)))
	}
	text := fmt.Sprintf("to %s: connected within %s", to, micros(a))
	if a.Server.IsValid() && a.Server != to {
		text += ", to " + a.Server.String() + t.podAt(a.Server)
	}
	return t.step("connection", Passes, text)
}

func (t *tracing) podAt(at netip.AddrPort) string {
	for _, e := range t.found {
		if e.at == at && e.pod != nil {
			return " (" + e.pod.Name + ")"
		}
	}
	return ""
}

// failure is what came of an attempt, in words.
func failure(a report.Attempt) string {
	switch {
	case a.Refused:
		return "refused"
	case a.Late:
		return "no answer within " + micros(a)
	}
	return brief.Clip(a.Error, 200)
}

// judge makes the verdict of the steps.
func (t *tracing) judge() {
	way := fmt.Sprintf("from pod %s/%s to service %s/%s:%d", t.pod.Namespace, t.pod.Name, t.svc.Namespace, t.svc.Name, t.port.Port)
	first := slices.IndexFunc(t.out.Steps, func(s Step) bool { return s.State == Stops })
	switch connected := t.tried != nil && t.tried.Done; {
	case connected && first < 0:
		t.out.Good, t.out.Head = true, "the way "+way+" is open"
	case connected: // by its address, or to another endpoint
		t.out.Head = fmt.Sprintf("the way %s is open, but not always: look at the step %q", way, t.out.Steps[first].Name)
	case first >= 0:
		t.out.Head = fmt.Sprintf("the way %s stops at the step %q", way, t.out.Steps[first].Name)
	default:
		t.out.Head = fmt.Sprintf("the way %s: nothing is known to stop it", way)
	}
}
