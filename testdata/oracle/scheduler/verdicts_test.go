package scheduler

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"minik8s/internal/scheduler/plan"
)

// TestVerdicts asks both sides of every node whether it may have a pod. They must agree: a node that
// upstream refuses must be refused, and one that upstream allows must be allowed, since all are ready.
func TestVerdicts(t *testing.T) {
	clusters := 1500
	if testing.Short() {
		clusters = 60
	}
	allowed, refused := 0, 0
	for seed := range uint64(clusters) {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			a, r := compare(t, generator{rand.New(rand.NewPCG(seed, 1))})
			allowed, refused = allowed+a, refused+r
		})
	}
	t.Logf("%d verdicts agree: %d allow, %d refuse", allowed+refused, allowed, refused)
	if allowed < refused/50 || refused < allowed/50 {
		t.Error("the generated pods and nodes test too little")
	}
}

func compare(t *testing.T, g generator) (allowed, refused int) {
	ours := plan.New(g.Uint64())
	spaces := g.namespaces()
	for _, ns := range spaces {
		ours.SetNamespace(ns.Name, ns.Labels)
	}
	var nodes []*corev1.Node
	for i := range 2 + g.IntN(8) {
		nodes = append(nodes, g.node(i))
		ours.SetNode(nodes[i])
	}
	var bound []*corev1.Pod
	for i := range g.IntN(15) {
		p := g.pod(fmt.Sprintf("bound%d", i))
		p.Spec.NodeName = nodes[g.IntN(len(nodes))].Name
		if g.chance(10) {
			p.DeletionTimestamp = &metav1.Time{}
		}
		ours.Place(ours.Pod(p), p.Spec.NodeName)
		bound = append(bound, p)
	}
	up := newUpstream(t, nodes, bound, spaces)
	for i := range 12 {
		obj := g.pod(fmt.Sprintf("p%d", i))
		p, theirs := ours.Pod(obj), up.verdicts(obj)
		for _, n := range nodes {
			why, no := theirs[n.Name]
			mine := ours.Refusals(p, n.Name)
			switch {
			case no && len(mine) == 0:
				t.Errorf("%s on %s: we allow it, upstream says %s\n%s", obj.Name, n.Name, why, show(obj))
			case !no && len(mine) > 0:
				t.Errorf("%s on %s: upstream allows it, we say %s\n%s", obj.Name, n.Name, strings.Join(mine, "; "), show(obj))
			case no:
				refused++
			default:
				allowed++
			}
		}
		node, none := ours.Choose(p)
		switch {
		case none != nil && len(theirs) < len(nodes):
			t.Errorf("%s: we find no node (%s), upstream refuses %d of %d", obj.Name, none.Text, len(theirs), len(nodes))
		case none == nil && theirs[node] != "":
			t.Errorf("%s: we choose %s, upstream says %s", obj.Name, node, theirs[node])
		}
	}
	return allowed, refused
}

func show(p *corev1.Pod) string { return fmt.Sprintf("labels %v, spec %s", p.Labels, p.Spec.String()) }
