package stats

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"time"

	"minik8s/internal/kubelet/cri"
)

// shake changes each number of a struct, now and then, and goes into the structs in it.
func shake(r *rand.Rand, v reflect.Value) {
	for _, f := range v.Fields() {
		switch {
		case f.Kind() == reflect.Struct:
			shake(r, f)
		case f.Kind() == reflect.Uint64 && r.IntN(3) == 0:
			f.SetUint(f.Uint() + r.Uint64()>>r.IntN(64))
		}
	}
}

// What is remembered is what was added, whatever of it changes: all numbers, up and down, and what some samples lack.
func TestPastIsTheSame(t *testing.T) {
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 1))
		var p past
		var want []Sample
		at := time.Unix(1e9, 0)
		var s Sample
		pressure, network := cri.Pressure{}, cri.Network{Interface: "eth0"}
		var interfaces []cri.Network // of the machine, which gets some, and others
		for range 1 + r.IntN(100) {
			at = at.Add(time.Duration(r.Int64N(int64(20 * time.Second))))
			shake(r, reflect.ValueOf(&s.Usage).Elem())
			shake(r, reflect.ValueOf(&pressure).Elem())
			shake(r, reflect.ValueOf(&network).Elem())
			if r.IntN(4) == 0 {
				interfaces = nil
				for i := range r.IntN(3) {
					interfaces = append(interfaces, cri.Network{Interface: fmt.Sprint("eth", i), Received: r.Uint64()})
				}
			}
			x := s
			x.Time, x.Interfaces = at, slices.Clone(interfaces)
			if r.IntN(5) > 0 {
				x.Pressure = new(pressure)
			}
			if r.IntN(5) > 0 {
				x.Network = new(network)
			}
			p.add(x, 60)
			want = append(want, x)
		}
		got := p.newest(func(int, time.Time) bool { return false })
		if len(want) <= 60 && len(got) != len(want) || len(got) > 60 || len(want) > 60 && len(got) < 40 {
			t.Fatalf("seed %d: %d samples of %d", seed, len(got), len(want))
		}
		want = want[len(want)-len(got):]
		for i := range got {
			if !reflect.DeepEqual(got[i], want[i]) {
				t.Fatalf("seed %d: sample %d of %d is\n%+v, want\n%+v", seed, i, len(got), got[i], want[i])
			}
		}
		some := p.newest(func(n int, _ time.Time) bool { return n == 3 })
		if !reflect.DeepEqual(some, got[max(0, len(got)-3):]) {
			t.Fatalf("seed %d: the newest three are others", seed)
		}
	}
}

// A second in which nothing happens takes a few bytes.
func TestPastIsSmall(t *testing.T) {
	var p past
	s := Sample{Usage: cri.Usage{CPU: 1 << 40, Memory: 1 << 30, Rest: cri.Rest{Pressure: &cri.Pressure{}}}}
	for i := range 60 {
		s.Time = time.Unix(int64(i), 0)
		p.add(s, 60)
	}
	if len(p.records) > 60*10 {
		t.Errorf("%d bytes", len(p.records))
	}
}

func TestClockSetBack(t *testing.T) {
	var p past
	for _, second := range []int64{10, 11, 9, 10} {
		p.add(Sample{Time: time.Unix(second, 0)}, 60)
	}
	if got := p.newest(func(int, time.Time) bool { return false }); len(got) != 2 || got[0].Time.Unix() != 9 {
		t.Errorf("%+v", got)
	}
}
