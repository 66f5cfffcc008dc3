package network

import (
	"errors"
	"math/rand"
	"net/netip"
	"testing"
)

// Whatever is taken, freed and restored in whatever order: no address is given out twice, none
// outside the range, and none of those that are kept back.
func TestAddressesAreNeverGivenTwice(t *testing.T) {
	for seed := range int64(50) {
		rnd := rand.New(rand.NewSource(seed))
		var p pool
		prefix := netip.MustParsePrefix("10.1.2.0/26")
		if err := p.setPrefix(prefix); err != nil {
			t.Fatal(err)
		}
		held := map[netip.Addr]bool{}
		for range 2000 {
			switch rnd.Intn(5) {
			case 0, 1, 2:
				a, err := p.get()
				if errors.Is(err, ErrNoAddress) {
					if len(held) < 61 {
						t.Fatalf("seed %d: none left with %d in use", seed, len(held))
					}
					continue
				}
				if err != nil {
					t.Fatal(err)
				}
				if held[a] {
					t.Fatalf("seed %d: %s given twice", seed, a)
				}
				if !prefix.Contains(a) || a.As4()[3] < reserved || a.As4()[3] == 63 {
					t.Fatalf("seed %d: %s should not be given", seed, a)
				}
				held[a] = true
			case 3:
				for a := range held {
					p.put(a)
					delete(held, a)
					break
				}
			case 4:
				a := nth(prefix.Addr(), uint64(reserved+rnd.Intn(60)))
				p.reserve(a)
				held[a] = true
			}
		}
	}
}

func TestAFreedAddressComesBackLate(t *testing.T) {
	var p pool
	if err := p.setPrefix(netip.MustParsePrefix("10.1.2.0/24")); err != nil {
		t.Fatal(err)
	}
	first, err := p.get()
	if err != nil {
		t.Fatal(err)
	}
	p.put(first)
	for i := range 252 {
		a, err := p.get()
		if err != nil {
			t.Fatal(err)
		}
		if a == first {
			t.Fatalf("%s came back after %d others", first, i)
		}
		p.put(a)
	}
}

func TestRangesThatCannotWork(t *testing.T) {
	var p pool
	for _, s := range []string{"10.0.0.0/30", "10.0.0.0/32", "fd00::/64"} {
		if err := p.setPrefix(netip.MustParsePrefix(s)); err == nil {
			t.Errorf("%s was accepted", s)
		}
	}
}

// The address of a removed pod is not assigned again until its flows have been ended.
func TestALeftAddressRests(t *testing.T) {
	var p pool
	if err := p.setPrefix(netip.MustParsePrefix("10.1.2.0/29")); err != nil {
		t.Fatal(err)
	}
	var all []netip.Addr
	for {
		a, err := p.get()
		if err != nil {
			break
		}
		all = append(all, a)
	}
	p.retire(all[1])
	if a, err := p.get(); err == nil {
		t.Errorf("%s is given out at once", a)
	}
	if !p.unassigned(all[1]) || p.unassigned(all[0]) || p.unassigned(netip.MustParseAddr("10.1.3.1")) {
		t.Error("who is dead?")
	}
	p.free(p.retiredAddrs())
	if a, err := p.get(); err != nil || a != all[1] || p.unassigned(a) {
		t.Errorf("%s, %v", a, err)
	}
}
