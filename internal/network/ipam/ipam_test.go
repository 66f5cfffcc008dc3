package ipam

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
		var p Pool
		prefix := netip.MustParsePrefix("10.1.2.0/26")
		if err := p.SetPrefix(prefix); err != nil {
			t.Fatal(err)
		}
		held := map[netip.Addr]bool{}
		for range 2000 {
			switch rnd.Intn(5) {
			case 0, 1, 2:
				a, err := p.Get()
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
					p.Put(a)
					delete(held, a)
					break
				}
			case 4:
				a := nth(prefix.Addr(), uint64(reserved+rnd.Intn(60)))
				p.Reserve(a)
				held[a] = true
			}
		}
	}
}

func TestAFreedAddressComesBackLate(t *testing.T) {
	var p Pool
	if err := p.SetPrefix(netip.MustParsePrefix("10.1.2.0/24")); err != nil {
		t.Fatal(err)
	}
	first, err := p.Get()
	if err != nil {
		t.Fatal(err)
	}
	p.Put(first)
	for i := range 252 {
		a, err := p.Get()
		if err != nil {
			t.Fatal(err)
		}
		if a == first {
			t.Fatalf("%s came back after %d others", first, i)
		}
		p.Put(a)
	}
}

func TestRangesThatCannotWork(t *testing.T) {
	var p Pool
	for _, s := range []string{"10.0.0.0/30", "10.0.0.0/32", "fd00::/64"} {
		if err := p.SetPrefix(netip.MustParsePrefix(s)); err == nil {
			t.Errorf("%s was accepted", s)
		}
	}
}

// The address of a removed pod is not assigned again until its flows have been ended.
func TestALeftAddressRests(t *testing.T) {
	var p Pool
	if err := p.SetPrefix(netip.MustParsePrefix("10.1.2.0/29")); err != nil {
		t.Fatal(err)
	}
	var all []netip.Addr
	for {
		a, err := p.Get()
		if err != nil {
			break
		}
		all = append(all, a)
	}
	p.Retire(all[1])
	if a, err := p.Get(); err == nil {
		t.Errorf("%s is given out at once", a)
	}
	if !p.Unassigned(all[1]) || p.Unassigned(all[0]) || p.Unassigned(netip.MustParseAddr("10.1.3.1")) {
		t.Error("who is dead?")
	}
	p.Free(p.Retired())
	if a, err := p.Get(); err != nil || a != all[1] || p.Unassigned(a) {
		t.Errorf("%s, %v", a, err)
	}
}
