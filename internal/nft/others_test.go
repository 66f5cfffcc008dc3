package nft

import (
	"strings"
	"testing"
)

func TestStops(t *testing.T) {
	drop := OtherRule{Chain: "c", Handle: 7, Verdict: Drops}
	eth0 := OtherRule{Chain: "c", Handle: 8, Verdict: Drops, Links: []Link{{Name: "eth0"}}}
	bridge := OtherRule{Chain: "c", Handle: 9, Verdict: Drops, Links: []Link{{Name: "virbr0", Out: true}}}
	narrow := OtherRule{Chain: "c", Handle: 10, Verdict: Drops, Narrow: true}
	accept := OtherRule{Chain: "c", Verdict: Accepts}
	ours := OtherRule{Chain: "c", Verdict: Accepts, Comment: "tag: x", Narrow: true}
	jump := func(v Verdict, into ...OtherRule) OtherRule {
		for i := range into {
			into[i].Chain = "sub"
		}
		return OtherRule{Chain: "c", Verdict: v, Into: into}
	}
	matters := func(l Link) bool { return l.Name == "eth0" }
	for name, c := range map[string]struct {
		drops bool
		rules []OtherRule
		want  string // "" is that nothing stops
		index int
	}{
		"an empty chain":                   {false, nil, "", 0},
		"a policy":                         {true, []OtherRule{ours}, "policy drop", 1},
		"a policy behind an accept":        {true, []OtherRule{accept}, "", 0},
		"a rule for all":                   {false, []OtherRule{ours, drop}, "handle 7", 1},
		"a rule by the link that matters":  {false, []OtherRule{eth0}, "handle 8", 0},
		"a rule by another link":           {false, []OtherRule{bridge}, "", 0},
		"a narrow rule":                    {false, []OtherRule{narrow}, "", 0},
		"a rule behind an accept":          {false, []OtherRule{accept, drop}, "", 0},
		"a jump to a rule for all":         {false, []OtherRule{narrow, jump(Jumps, bridge, drop)}, "by chain sub, rule with handle 7", 1},
		"a jump that returns before":       {false, []OtherRule{jump(Jumps, OtherRule{Verdict: Returns}, drop)}, "", 0},
		"a jump that accepts before":       {true, []OtherRule{jump(Jumps, accept, drop)}, "", 0},
		"a jump that leads back to policy": {true, []OtherRule{jump(Jumps, narrow)}, "policy drop", 1},
		"a goto that ends at the policy":   {true, []OtherRule{jump(Gotos, narrow), accept}, "policy drop", 0},
	} {
		got := BaseChain{Family: "ip", Table: "t", Name: "c", Drops: c.drops, Rules: c.rules}.Stops("tag", matters)
		switch {
		case c.want == "" && got != nil:
			t.Errorf("%s: stops at %+v", name, got)
		case c.want != "" && (got == nil || !strings.Contains(got.Where, c.want) || got.Index != c.index):
			t.Errorf("%s: %+v, want %s at %d", name, got, c.want, c.index)
		}
	}
}
