package nft

import (
	"net/netip"
	"strings"
	"testing"
)

// The effect of chains on all that pods send.
func TestEffect(t *testing.T) {
	pods := netip.MustParsePrefix("10.244.3.0/24")
	source := func(p string) Match { return Match{Field: BySource, Prefix: netip.MustParsePrefix(p)} }
	not := func(m Match) Match { m.Not = true; return m }
	port := Match{Field: ByPort, Ports: [2]uint16{25, 25}}
	state := func(bits uint32) Match { return Match{Field: ByState, States: bits} }
	rule := func(handle uint64, v Verdict, list ...Match) OtherRule {
		return OtherRule{Chain: "c", Handle: handle, Verdict: v, Matches: list}
	}
	by := func(r OtherRule, l Link) OtherRule { r.Links = []Link{l}; return r }
	drop := rule(7, Drops)
	eth0 := by(rule(8, Drops), Link{Name: "eth0"})
	bridge := by(rule(9, Drops), Link{Name: "virbr0", Out: true})
	unread := rule(10, Drops, Match{})
	accept := rule(11, Accepts)
	ours := OtherRule{Chain: "c", Verdict: Accepts, Comment: "tag: x"}
	jump := func(v Verdict, into ...OtherRule) OtherRule {
		for i := range into {
			into[i].Chain = "sub"
		}
		return OtherRule{Chain: "c", Verdict: v, Into: into}
	}
	oneOf := func(r OtherRule, list ...Match) OtherRule { r.Matches = list; return r }
	passes := func(l Link) bool { return l.Name == "eth0" }
	for name, c := range map[string]struct {
		drops  bool
		rules  []OtherRule
		stop   string // "" is that nothing stops
		index  int
		partly string // of the rules that drop a part, joined
	}{
		"an empty chain":                    {},
		"a policy":                          {drops: true, rules: []OtherRule{ours}, stop: "policy drop", index: 1},
		"a policy behind an accept":         {drops: true, rules: []OtherRule{accept}},
		"a rule for all":                    {rules: []OtherRule{ours, drop}, stop: "handle 7", index: 1},
		"a rule by a link that is passed":   {rules: []OtherRule{eth0}, stop: "handle 8"},
		"a rule by another link":            {rules: []OtherRule{bridge}},
		"a rule behind an accept":           {rules: []OtherRule{accept, drop}},
		"a jump to a rule for all":          {rules: []OtherRule{bridge, jump(Jumps, bridge, drop)}, stop: "by chain sub, rule with handle 7", index: 1},
		"a jump that returns before":        {rules: []OtherRule{jump(Jumps, rule(1, Returns), drop)}},
		"a jump that accepts before":        {drops: true, rules: []OtherRule{jump(Jumps, accept, drop)}},
		"a jump that leads back to policy":  {drops: true, rules: []OtherRule{jump(Jumps, bridge)}, stop: "policy drop", index: 1},
		"a goto that ends at the policy":    {drops: true, rules: []OtherRule{jump(Gotos, bridge), accept}, stop: "policy drop"},
		"what is not read":                  {rules: []OtherRule{unread}, partly: "handle 10"},
		"an accept that is not read":        {drops: true, rules: []OtherRule{rule(1, Accepts, Match{})}, stop: "policy drop", index: 1},
		"all private addresses":             {rules: []OtherRule{rule(1, Drops, source("10.0.0.0/8"))}, stop: "handle 1"},
		"all but other private addresses":   {rules: []OtherRule{rule(1, Drops, not(source("192.168.0.0/16")))}, stop: "handle 1"},
		"all but the pods":                  {rules: []OtherRule{rule(1, Drops, not(source("10.244.0.0/16")))}},
		"somebody else's address":           {rules: []OtherRule{rule(1, Drops, source("192.0.2.7/32"))}},
		"one pod":                           {rules: []OtherRule{rule(1, Drops, source("10.244.3.7/32"))}, partly: "handle 1"},
		"all but one pod":                   {rules: []OtherRule{rule(1, Drops, not(source("10.244.3.7/32")))}, partly: "handle 1"},
		"an address that pods send to":      {rules: []OtherRule{rule(1, Drops, Match{Field: ByDestination, Prefix: netip.MustParsePrefix("192.0.2.7/32")})}, partly: "handle 1"},
		"a port":                            {rules: []OtherRule{rule(1, Drops, port)}, partly: "handle 1"},
		"new connections":                   {rules: []OtherRule{rule(1, Drops, state(stateNew))}, stop: "handle 1"},
		"invalid ones":                      {rules: []OtherRule{rule(1, Drops, state(1))}},
		"all but connections there are":     {rules: []OtherRule{rule(1, Drops, not(state(stateEstablished)))}, stop: "handle 1"},
		"replies alone are accepted":        {drops: true, rules: []OtherRule{rule(1, Accepts, state(stateEstablished))}, stop: "policy drop", index: 1},
		"new ones alone are accepted":       {drops: true, rules: []OtherRule{rule(1, Accepts, state(stateNew))}, stop: "policy drop", index: 1},
		"all but invalid ones are accepted": {drops: true, rules: []OtherRule{rule(1, Accepts, not(state(1)))}},
		"new ones jump to an accept":        {drops: true, rules: []OtherRule{oneOf(jump(Jumps, accept), state(stateNew))}, stop: "policy drop", index: 1},
		"new ones jump to a drop":           {rules: []OtherRule{oneOf(jump(Jumps, drop), state(stateNew))}, stop: "by chain sub, rule with handle 7"},
		"a port jumps to a drop":            {rules: []OtherRule{oneOf(jump(Jumps, drop), port)}, partly: "by chain sub, rule with handle 7"},
		"the other family":                  {rules: []OtherRule{rule(1, Drops, Match{Field: Never})}},
	} {
		got := BaseChain{Family: "ip", Table: "t", Name: "c", Drops: c.drops, Rules: c.rules}.Effect("tag", Accept{From: pods}, passes)
		if (got.Stop == "") != (c.stop == "") || !strings.Contains(got.Stop, c.stop) || c.stop != "" && got.Index != c.index {
			t.Errorf("%s: stops %q at %d, want %q at %d", name, got.Stop, got.Index, c.stop, c.index)
		}
		if got := strings.Join(got.Partly, " "); (got == "") != (c.partly == "") || !strings.Contains(got, c.partly) {
			t.Errorf("%s: partly %q, want %q", name, got, c.partly)
		}
	}
}

// Of traffic to one port no rule for another port is a part.
func TestEffectOnOnePort(t *testing.T) {
	api := Accept{From: netip.MustParsePrefix("10.244.3.0/24"), Protocol: "tcp", Port: 6443}
	for _, c := range []struct {
		match   Match
		want    Share
		replies Share // for packets of connections that there are
	}{
		{Match{Field: ByPort, Ports: [2]uint16{22, 22}}, None, Some},
		{Match{Field: ByPort, Ports: [2]uint16{1024, 65535}}, All, Some},
		{Match{Field: ByPort, Ports: [2]uint16{22, 22}, Not: true}, All, Some},
		{Match{Field: ByProtocol, Proto: 6}, All, Some},
		{Match{Field: ByProtocol, Proto: 17}, None, Some},
		{Match{Field: ByState, States: stateNew}, All, None},
		{Match{Field: ByState, States: stateEstablished}, All, All},
		{Match{}, Some, Some},
	} {
		if got := c.match.of(api, true); got != c.want {
			t.Errorf("%+v: %d, want %d", c.match, got, c.want)
		}
		if got := c.match.of(Accept{From: api.From, Replies: true}, true); got != c.replies {
			t.Errorf("%+v of replies: %d, want %d", c.match, got, c.replies)
		}
	}
}
