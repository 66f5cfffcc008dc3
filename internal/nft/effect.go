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
	// Partly names the rules that drop a part of the traffic, or may do so: not every match is understood.
	Partly []string
}

// Effect works out what the chain does with traffic. Rules with the tag are ignored. passes reports whether the
// traffic passes a link that a rule matches.
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

// walk follows some traffic through a chain and the chains that it jumps to.
type walk struct {
	tag     string
	traffic Accept
	passes  func(Link) bool
	by      string   // the chain that was jumped to, for messages
	partly  []string // the rules that drop a part
}

// through follows the traffic through a list of rules. It returns the verdict for all of the traffic, GoOn at the end
// of the list, and the rule that gave it. toDrop is the share of the traffic that reaches this list for rules that
// drop, and toAccept the share for rules that accept: see Match.of.
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
			if end != GoOn || r.Verdict == Gotos && accepts == All { // a goto does not return
				return end, i, where
			}
		}
	}
	return GoOn, len(rules), ""
}

// of is the share of the traffic that a rule matches.
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
