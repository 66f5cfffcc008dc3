package nft

import (
	"fmt"
	"strings"
)

// Effect is what a chain does with some traffic.
type Effect struct {
	// Stop names the rule, or the policy, that drops all of the traffic; empty: none does.
	Stop string
	// Index is that rule's place among the chain's own rules; len(Rules) is the policy.
	Index int
	// Partly names the rules that drop a part of the traffic, or that may: not all that a rule can ask for is read.
	Partly []string
}

// Effect says what becomes of traffic in the chain. Rules with the tag are left out. passes says of a match on a link
// whether the traffic passes such a link.
func (c BaseChain) Effect(tag string, traffic Accept, passes func(Link) bool) Effect {
	w := walk{tag: tag, traffic: traffic, passes: passes}
	end, at, where := w.through(c.Rules, All, All)
	out := Effect{Index: at, Partly: w.partly}
	switch {
	case end == Drops:
		out.Stop = c.String() + where
	case end == GoOn && c.Drops:
		out.Stop = c.String() + ", policy drop"
	}
	for i := range out.Partly {
		out.Partly[i] = c.String() + out.Partly[i]
	}
	return out
}

// walk is the way of some traffic through a chain and those that it jumps to.
type walk struct {
	tag     string
	traffic Accept
	passes  func(Link) bool
	by      string   // the chain that it has jumped to, for people
	partly  []string // the rules that drop a part
}

// through follows the traffic through a list of rules. It says what becomes of all of it, GoOn at the end of the list,
// and by which rule. Of the traffic, the share toDrop comes to this list as far as rules that drop are concerned, and
// toAccept for those that accept: see Match.of.
func (w *walk) through(rules []OtherRule, toDrop, toAccept Share) (end Verdict, at int, where string) {
	for i, r := range rules {
		drops, accepts := min(toDrop, w.of(r, true)), min(toAccept, w.of(r, false))
		if drops == None || strings.HasPrefix(r.Comment, w.tag) {
			continue
		}
		switch r.Verdict {
		case Drops:
			if drops == All {
				return Drops, i, w.where(r)
			}
			w.partly = append(w.partly, w.where(r))
		case Accepts:
			if accepts == All {
				return Accepts, i, ""
			}
		case Returns:
			if accepts == All {
				return GoOn, i, ""
			}
		case Jumps, Gotos:
			sub := walk{tag: w.tag, traffic: w.traffic, passes: w.passes, partly: w.partly}
			if len(r.Into) > 0 {
				sub.by = w.by + ", by chain " + r.Into[0].Chain
			}
			end, _, where := sub.through(r.Into, drops, accepts)
			w.partly = sub.partly
			if end != GoOn || r.Verdict == Gotos && accepts == All { // nothing comes back from a goto
				return end, i, where
			}
		}
	}
	return GoOn, len(rules), ""
}

// of says how much of the traffic a rule is about.
func (w *walk) of(r OtherRule, drops bool) Share {
	part := All
	for _, l := range r.Links {
		part = min(part, allOrNone(w.passes(l)))
	}
	for _, m := range r.Matches {
		part = min(part, m.of(w.traffic, drops))
	}
	return part
}

func (w *walk) where(r OtherRule) string {
	text := fmt.Sprintf("%s, rule with handle %d drops", w.by, r.Handle)
	if r.Comment != "" {
		text += fmt.Sprintf(" (%s)", r.Comment)
	}
	return text
}
