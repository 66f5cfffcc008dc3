package etcd_test

import (
	"errors"
	"testing"

	"minik8s/internal/store"
	"minik8s/internal/store/etcd"
)

// follower is a member that another one leads.
func follower(t *testing.T) *etcd.Store {
	c := newCluster(t)
	c.open(c.config("a"))
	return c.open(c.config("b"))
}

func write(t *testing.T, s *etcd.Store, changes ...store.Change) int64 {
	t.Helper()
	rev, err := s.Write(t.Context(), changes...)
	if err != nil {
		t.Fatal(err)
	}
	return rev
}

// A leader that was stopped hands a write on when it wakes, after the member has given it up and written it again, and
// others have changed what was written: it is not carried out any more.
func TestLateProposal(t *testing.T) {
	s := follower(t)
	for range 2 { // the second time, the member has a fence already
		create := store.Create("/k", []byte("mine"))
		land := s.Late(create)
		since := write(t, s, store.Create("/other", nil))
		write(t, s, store.Drop("/other"))
		if rev, err := s.GiveUp(t.Context(), since, create); rev != 0 || err != nil {
			t.Fatal(rev, err)
		}
		write(t, s, store.Delete("/k", write(t, s, create)))
		if done, err := land(t.Context()); done || err != nil {
			t.Errorf("the late proposal was carried out (%v), %v", done, err)
		}
		if _, err := s.Get(t.Context(), "/k"); !errors.Is(err, store.ErrNotFound) {
			t.Error(err)
		}
	}
	s.ForgetFence() // as one that has just started
	write(t, s, store.Create("/k", nil))
}

// What became of a write without an answer is found in the history, whatever others have done since.
func TestGivenUpWrites(t *testing.T) {
	s := follower(t)
	mine, others := []byte("mine"), []byte("others'")
	for name, c := range map[string]struct {
		change func(before int64) store.Change // before is when /k was written first
		then   func(before int64) (mine int64)
		want   error // or nil: the revision is mine, 0 if it was not carried out
	}{
		"updated": {func(before int64) store.Change { return store.Update("/k", mine, before) },
			func(before int64) int64 { return write(t, s, store.Update("/k", mine, before)) }, nil},
		"updated, and updated by another": {func(before int64) store.Change { return store.Update("/k", mine, before) },
			func(before int64) int64 {
				rev := write(t, s, store.Update("/k", mine, before))
				write(t, s, store.Update("/k", others, rev))
				return rev
			}, nil},
		"updated, deleted and created by others": {func(before int64) store.Change { return store.Update("/k", mine, before) },
			func(before int64) int64 {
				rev := write(t, s, store.Update("/k", mine, before))
				write(t, s, store.Delete("/k", rev))
				write(t, s, store.Create("/k", others))
				return rev
			}, nil},
		"not updated, but by another": {func(before int64) store.Change { return store.Update("/k", mine, before) },
			func(before int64) int64 { write(t, s, store.Update("/k", others, before)); return 0 }, nil},
		"the same by another, later": {func(before int64) store.Change { return store.Update("/k", mine, before) },
			func(before int64) int64 {
				write(t, s, store.Update("/k", mine, write(t, s, store.Update("/k", others, before))))
				return 0
			}, nil},
		"not created, but by another": {func(int64) store.Change { return store.Create("/n", mine) },
			func(int64) int64 { write(t, s, store.Create("/n", others)); return 0 }, nil},
		"created, and deleted by another": {func(int64) store.Change { return store.Create("/n", mine) },
			func(int64) int64 {
				rev := write(t, s, store.Create("/n", mine))
				write(t, s, store.Delete("/n", rev))
				return rev
			}, nil},
		"not deleted": {func(before int64) store.Change { return store.Delete("/k", before) }, func(int64) int64 { return 0 }, nil},
		"not deleted, but updated": {func(before int64) store.Change { return store.Delete("/k", before) },
			func(before int64) int64 {
				write(t, s, store.Delete("/k", write(t, s, store.Update("/k", others, before))))
				return 0
			}, nil},
		"deleted, nobody knows by whom": {func(before int64) store.Change { return store.Delete("/k", before) },
			func(before int64) int64 { write(t, s, store.Delete("/k", before)); return 0 }, store.ErrUnknown},
		"a guard": {func(before int64) store.Change { return store.Unchanged("/k", before) }, func(int64) int64 { return 0 }, nil},
	} {
		t.Run(name, func(t *testing.T) {
			write(t, s, store.Drop("/k"), store.Drop("/n"))
			before := write(t, s, store.Create("/k", []byte("before")))
			want := c.then(before)
			got, err := s.GiveUp(t.Context(), before, c.change(before))
			if got != want || !errors.Is(err, c.want) {
				t.Errorf("%d, %v; want %d, %v", got, err, want, c.want)
			}
		})
	}
}
