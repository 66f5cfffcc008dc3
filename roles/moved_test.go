package roles

import (
	"net/netip"
	"testing"
)

// A machine has moved when the address that it was known by has gone and it reaches others from another one: not while it has
// both, has none, or its routes use an address that is not its own.
func TestMovedTo(t *testing.T) {
	a, b, c := netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("10.0.0.2"), netip.MustParseAddr("10.0.0.3")
	for name, x := range map[string]struct {
		own    []netip.Addr
		routed netip.Addr
		want   netip.Addr
	}{
		"as it was":                   {own: []netip.Addr{a}, routed: a},
		"one more":                    {own: []netip.Addr{a, b}, routed: b},
		"another":                     {own: []netip.Addr{c, b}, routed: b, want: b},
		"none":                        {},
		"another without a way":       {own: []netip.Addr{b}},
		"a way from a foreign source": {own: []netip.Addr{b}, routed: c},
	} {
		if got := movedTo(a, x.own, x.routed); got != x.want {
			t.Errorf("%s: %s", name, got)
		}
	}
}
