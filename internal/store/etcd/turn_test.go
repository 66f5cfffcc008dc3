package etcd_test

import (
	"testing"
	"time"

	"minik8s/internal/store/etcd"
)

// One member at a time does what blocks it, and the one that leads hands that on first.
func TestTurns(t *testing.T) {
	c := newCluster(t)
	a := c.open(c.config("a"))
	b := c.open(joins(a, c.config("b")))
	third := c.open(joins(a, c.config("c")))
	voters := func(m []etcd.Member) bool {
		n := 0
		for _, e := range m {
			if !e.Learner {
				n++
			}
		}
		return n == 3
	}
	await(t, a, "three voters", voters)
	leader := func() (leads *etcd.Store, others []*etcd.Store) {
		t.Helper()
		for end := time.Now().Add(20 * time.Second); leads == nil; time.Sleep(10 * time.Millisecond) {
			if others = nil; time.Now().After(end) {
				t.Fatal("nobody leads")
			}
			for _, s := range []*etcd.Store{a, b, third} {
				if yes, _ := s.Leads(); yes {
					leads = s
				} else {
					others = append(others, s)
				}
			}
		}
		return leads, others
	}
	first, _ := leader()
	if over := first.Turn(t.Context()); over != nil {
		t.Error("the leader has a turn")
	}
	second, others := leader()
	if second == first {
		t.Fatal("it leads still")
	}
	over := others[0].Turn(t.Context())
	if over == nil {
		t.Fatal("it is nobody's turn, and not this one's")
	}
	if others[1].Turn(t.Context()) != nil {
		t.Error("two have a turn")
	}
	over()
	over = others[1].Turn(t.Context())
	if over == nil {
		t.Fatal("a turn does not end")
	}
	over()
	if n := count(t, a); n != 0 {
		t.Errorf("%d keys of objects", n)
	}
}
