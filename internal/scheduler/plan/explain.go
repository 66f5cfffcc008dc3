package plan

import (
	"fmt"
	"sort"
	"strings"

	"minik8s/internal/api/placement"
)

// Cause is the set of filters that refused a pod.
type Cause uint16

// The filters, one bit each.
const (
	ByClosed       Cause = 1 << iota // the node is cordoned or not ready
	ByName                           // spec.nodeName
	ByTaint                          // an untolerated taint
	BySelector                       // nodeSelector or node affinity
	ByPorts                          // a host port that is taken
	ByFit                            // resources, or the number of pods
	BySpread                         // topology spread
	ByAffinity                       // pod affinity
	ByAntiAffinity                   // pod anti-affinity, the pod's own or that of existing pods
)

// Refusal is the reason why a pod gets no node.
type Refusal struct {
	// Text is for people: "0/3 nodes are available: 2 Insufficient cpu, 1 ...".
	Text   string
	Causes Cause
	// Nodes says the same for programs: which filter refuses which nodes.
	Nodes placement.Refusals
}

// The reasons of the filters that look at one node. Those for taints and resources are made elsewhere.
const (
	whyName     = "node(s) didn't match the requested node name"
	whySelector = "node(s) didn't match Pod's node affinity/selector"
	whyPorts    = "node(s) didn't have free ports for the requested pod ports"
	whyPods     = "Too many pods"
)

// diagnosis counts the reasons why nodes refuse a pod, like kube-scheduler's type of that name.
type diagnosis struct {
	reasons map[string]int
	causes  Cause
	nodes   placement.Refusals
}

func newDiagnosis() *diagnosis {
	return &diagnosis{reasons: map[string]int{}, nodes: placement.Refusals{}}
}

func (t *diagnosis) add(cause Cause, reason string) {
	t.reasons[reason]++
	t.causes |= cause
}

// codes maps causes to the codes that programs read.
var codes = map[Cause]placement.Code{ByClosed: placement.Closed, ByName: placement.OtherNode, ByTaint: placement.Taint,
	BySelector: placement.NodeLabels, ByPorts: placement.HostPort, ByFit: placement.Resources, BySpread: placement.Spread,
	ByAffinity: placement.PodAffinity, ByAntiAffinity: placement.PodAntiAffinity}

// refuse returns the refusal of a pod of a class. If other pods play no part, it holds until a node changes.
func (c *Cluster) refuse(p *Pod, cl *class, d *dynamics) *Refusal {
	if len(cl.heap) > 0 {
		return c.refusal(p, d)
	}
	if cl.none == nil || cl.noneAt != cl.behind {
		// There is no candidate: the filters that look at one node refuse everywhere, and they come first.
		cl.none, cl.noneAt = c.refusal(p, nil), cl.behind
	}
	return cl.none
}

// refusal collects the reasons of every node.
func (c *Cluster) refusal(p *Pod, d *dynamics) *Refusal {
	t := newDiagnosis()
	if d == nil && len(p.spread) == 0 {
		d = c.prepare(p, nil)
	}
	for _, n := range c.nodes {
		if n.obj != nil {
			cause, others := c.reasons(p, n, d, t)
			code := codes[cause]
			if others {
				code = placement.OthersAntiAffinity
			}
			if cause != 0 {
				t.nodes.Add(code, n.name, cause == BySelector && c.fitsBeside(p, n, d))
			}
		}
	}
	return &Refusal{Text: explain(c.known, t.reasons), Causes: t.causes, Nodes: t.nodes}
}

// fitsBeside reports whether a node would take the pod if the pod's labels did not matter.
func (c *Cluster) fitsBeside(p *Pod, n *node, d *dynamics) bool {
	if !n.portsFree(p) || !n.fits(p) {
		return false
	}
	if d == nil {
		return true
	}
	cause, _ := d.check(n.index)
	return cause == 0
}

// reasons adds why a node refuses a pod: the first filter that does, in Kubernetes' order. For resources, every one
// that is short is named. cause is 0 if the node takes the pod. others reports that an existing pod causes the refusal.
func (c *Cluster) reasons(p *Pod, n *node, d *dynamics, t *diagnosis) (cause Cause, others bool) {
	spec := &p.Obj.Spec
	if ok, why := n.open(spec.Tolerations); !ok {
		t.add(ByClosed, why)
		return ByClosed, false
	}
	if spec.NodeName != "" && spec.NodeName != n.name {
		t.add(ByName, whyName)
		return ByName, false
	}
	if i := placement.Untolerated(spec.Tolerations, n.obj.Spec.Taints); i >= 0 {
		t.add(ByTaint, n.tainted[i])
		return ByTaint, false
	}
	if !placement.Selects(spec, n.obj) {
		t.add(BySelector, whySelector)
		return BySelector, false
	}
	if !n.portsFree(p) {
		t.add(ByPorts, whyPorts)
		return ByPorts, false
	}
	if !n.fits(p) {
		if len(n.pods)+1 > n.maxPods {
			t.add(ByFit, whyPods)
		}
		for _, w := range p.wants {
			if at(n.used, w.id)+w.n > at(n.room, w.id) {
				t.add(ByFit, c.resources.short[w.id])
			}
		}
		return ByFit, false
	}
	if d != nil {
		if cause, why := d.check(n.index); cause != 0 {
			t.add(cause, why)
			return cause, why == whyExisting
		}
	}
	return 0, false
}

// explain summarizes the reasons as Kubernetes does.
func explain(nodes int, reasons map[string]int) string {
	parts := make([]string, 0, len(reasons))
	for r, n := range reasons {
		parts = append(parts, fmt.Sprintf("%d %s", n, r))
	}
	sort.Strings(parts)
	return fmt.Sprintf("0/%d nodes are available: %s.", nodes, strings.Join(parts, ", "))
}

// Refusals returns the reasons why a known node would refuse the pod now; none if it would take it.
func (c *Cluster) Refusals(p *Pod, name string) []string {
	n := c.byName[name]
	if n == nil || n.obj == nil {
		return []string{"node(s) are not known"}
	}
	var cl *class
	if len(p.spread) > 0 {
		cl = c.class(p)
	}
	t := newDiagnosis()
	c.reasons(p, n, c.prepare(p, cl), t)
	out := make([]string, 0, len(t.reasons))
	for r := range t.reasons {
		out = append(out, r)
	}
	sort.Strings(out)
	return out
}

// Allows reports whether a node passes the filters that look at one node alone. It is cheap, and tells when a change of
// one node cannot help a pod.
func (c *Cluster) Allows(p *Pod, name string) bool {
	n := c.byName[name]
	if n == nil {
		return false
	}
	_, _, ok := c.eval(p, n)
	return ok
}
