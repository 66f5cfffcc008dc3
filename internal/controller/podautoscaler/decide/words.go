package decide

import (
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// unit is in what a metric is shown.
type unit struct{ binary bool }

// unitOf: memory in Ki, Mi and Gi, all else in thousandths where it is not whole, as the metrics API has them.
func unitOf(name corev1.ResourceName) unit { return unit{name == corev1.ResourceMemory} }

// quantity is an amount in thousandths.
func (u unit) quantity(milli int64) *resource.Quantity {
	if u.binary {
		return resource.NewMilliQuantity(milli, resource.BinarySI)
	}
	return resource.NewMilliQuantity(milli, resource.DecimalSI)
}

// text is an amount for people: a fraction of a byte is not shown.
func (u unit) text(milli int64) string {
	if u.binary {
		return strconv.FormatFloat(float64(milli)/1000/(1<<20), 'f', 1, 64) + "Mi"
	}
	return u.quantity(milli).String()
}

// number is a ratio for people.
func number(x float64) string { return strconv.FormatFloat(x, 'g', 4, 64) }

// explain says how far what is used is from the goal.
func (g *goal) explain(d *Decision, s *sums, p *proposal, ratio float64) {
	if g.basis == nil {
		d.say("  %s use %s, %s on average; wanted %s: %s/%s = %s", count(s.n, "pod", "pods"), g.unit.text(s.used), g.unit.text(p.average),
			g.unit.text(g.amount), g.unit.text(p.average), g.unit.text(g.amount), number(ratio))
		return
	}
	d.say("  %s use %s of %s %s: %d%%; wanted %d%%: %d/%d = %s", count(s.known, "pod", "pods"), g.unit.text(s.usedKnown),
		g.unit.text(s.basisOfKnown), g.basis.what, p.percent, g.percent, p.percent, g.percent, number(ratio))
}
