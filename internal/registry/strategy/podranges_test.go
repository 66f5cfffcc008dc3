package strategy

import (
	"math/rand/v2"
	"net/netip"
	"slices"
	"testing"

	"minik8s/config"
)

// The first free range is what trying one range after the other finds, whatever is taken: larger and smaller ranges, single
// addresses, ranges within others and outside of the cluster's.
func TestFirstFreeRange(t *testing.T) {
	p := podRanges{cluster: netip.MustParsePrefix("10.244.0.0/18")}
	for seed := range uint64(2000) {
		r := rand.New(rand.NewPCG(seed, 1))
		taken := []takenRange{{netip.MustParsePrefix("fd00::/64"), nil}}
		for range r.IntN(100) {
			a := netip.AddrFrom4([4]byte{10, byte(243 + r.IntN(2)), byte(r.IntN(80)), byte(r.IntN(256))})
			taken = append(taken, takenRange{netip.PrefixFrom(a, []int{20, 23, 24, 24, 24, 26, 32}[r.IntN(7)]).Masked(), nil})
		}
		want := netip.Prefix{}
		for i := range 64 {
			c := netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 244, byte(i), 0}), config.NodeBits)
			if !slices.ContainsFunc(taken, func(t takenRange) bool { return t.Overlaps(c) }) {
				want = c
				break
			}
		}
		if got, ok := p.free(taken); ok != want.IsValid() || ok && got != want {
			t.Fatalf("seed %d: %s, %v, want %s; taken are %v", seed, got, ok, want, taken)
		}
	}
	whole := podRanges{cluster: netip.MustParsePrefix("255.255.0.0/16")}
	if got, ok := whole.free([]takenRange{{whole.cluster, nil}}); ok {
		t.Errorf("beyond the last address there is %s", got)
	}
}

// BenchmarkFreeRange is the range of the last of 5,000 Nodes.
func BenchmarkFreeRange(b *testing.B) {
	p, taken := podRanges{cluster: netip.MustParsePrefix("10.128.0.0/10")}, make([]takenRange, 5000)
	for i, at := range rand.New(rand.NewPCG(1, 1)).Perm(len(taken)) {
		taken[at].Prefix = netip.PrefixFrom(netip.AddrFrom4([4]byte{10, byte(128 + i/256), byte(i), 0}), 24)
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, ok := p.free(taken); !ok {
			b.Fatal("no range is free")
		}
	}
}
