package registry_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"

	"minik8s/internal/registry/registrytest"
	"minik8s/internal/store"
	"minik8s/internal/store/memory"
)

// away is a store whose majority is away at the first requests. The first write is carried out all the same.
type away struct {
	store.Store
	lists, writes atomic.Int32
}

func (s *away) List(ctx context.Context, prefix, after string, limit, revision int64) (store.Page, error) {
	if s.lists.Add(1) <= 2 {
		return store.Page{}, fmt.Errorf("%w: no leader", store.ErrUnavailable)
	}
	return s.Store.List(ctx, prefix, after, limit, revision)
}

func (s *away) Write(ctx context.Context, changes ...store.Change) (int64, error) {
	switch s.writes.Add(1) {
	case 1:
		if _, err := s.Store.Write(ctx, changes...); err != nil {
			return 0, err
		}
		return 0, store.ErrUnknown
	case 3:
		return 0, store.ErrUnavailable
	}
	return s.Store.Write(ctx, changes...)
}

// A master that starts while the majority of the masters is away waits for it, and does not end.
func TestStartWithoutMajority(t *testing.T) {
	s := &away{Store: memory.New()}
	_, stop := registrytest.Start(t, s)
	defer stop()
	page, err := s.Store.List(t.Context(), "/registry/namespaces/", "", 0, 0)
	if err != nil || len(page.KVs) != 2 || s.lists.Load() < 3 || s.writes.Load() < 4 {
		t.Errorf("%d namespaces, after %d lists and %d writes, %v", len(page.KVs), s.lists.Load(), s.writes.Load(), err)
	}
}
