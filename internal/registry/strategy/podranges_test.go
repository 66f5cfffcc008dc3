package strategy

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"testing"

	"minik8s/config"
)

// The first free range is what trying one range after the other finds, whatever is taken: larger and smaller ranges, single
// addresses, ranges within others and outside of the cluster's.
func TestFirstFreeRange(t *testing.T) {
	p := podRanges{cluster: netip.MustParsePrefix("10.244.0.0/18")}
	for seed := range uint64(2000) {
		r := rand.New(rand.NewPCG(seed, 1))
		taken := map[netip.Prefix]string{netip.MustParsePrefix("fd00::/64"): ""}
		for range r.IntN(100) {
			a := netip.AddrFrom4([4]byte{10, byte(243 + r.IntN(2)), byte(r.IntN(80)), byte(r.IntN(256))})
			taken[netip.PrefixFrom(a, []int{20, 23, 24, 24, 24, 26, 32}[r.IntN(7)]).Masked()] = ""
		}
		want := netip.Prefix{}
		for i := range 64 {
			c := netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 244, byte(i), 0}), config.NodeBits)
			if _, overlaps := overlapping(taken, c); !overlaps {
				want = c
				break
			}
		}
		if got, ok := p.free(taken); ok != want.IsValid() || ok && got != want {
			t.Fatalf("seed %d: %s, %v, want %s; taken are %v", seed, got, ok, want, taken)
		}
	}
	whole := podRanges{cluster: netip.MustParsePrefix("255.255.0.0/16")}
	if got, ok := whole.free(map[netip.Prefix]string{whole.cluster: ""}); ok {
		t.Errorf("beyond the last address there is %s", got)
	}
}

// BenchmarkFreeRange is the range of the last of 5,000 Nodes.
func BenchmarkFreeRange(b *testing.B) {
	p, taken := podRanges{cluster: netip.MustParsePrefix("10.128.0.0/10")}, map[netip.Prefix]string{}
	for i := range 5000 {
		taken[netip.PrefixFrom(netip.AddrFrom4([4]byte{10, byte(128 + i/256), byte(i), 0}), 24)] = fmt.Sprint(i)
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, ok := p.free(taken); !ok {
			b.Fatal("no range is free")
		}
	}
}
