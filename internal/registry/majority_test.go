package registry_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"minik8s/internal/api"
	"minik8s/internal/client"
	"minik8s/internal/client/local"
	"minik8s/internal/registry"
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

// ending is a store whose majority goes away after some more writes.
type ending struct {
	store.Store
	left atomic.Int32
}

func (s *ending) Write(ctx context.Context, changes ...store.Change) (int64, error) {
	if s.left.Add(-1) < 0 {
		return 0, store.ErrUnavailable
	}
	return s.Store.Write(ctx, changes...)
}

// A refusal for want of a majority says that nothing was changed. What has deleted some objects of many does not say that.
func TestCollectionHalfDeleted(t *testing.T) {
	s := &ending{Store: memory.New()}
	s.left.Store(100)
	reg, stop := registrytest.Start(t, s)
	defer stop()
	c := local.New(reg, registry.System)
	for i := range 3 {
		if _, err := c.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: fmt.Sprint("c", i)}}, client.WriteOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	for left, want := range []metav1.StatusReason{metav1.StatusReasonServiceUnavailable, metav1.StatusReasonTimeout} {
		s.left.Store(int32(left))
		_, err := reg.DeleteCollection(t.Context(), registrytest.Ask("deletecollection", api.ConfigMaps, "default", "", ""), registry.ListOptions{}, nil)
		if apierrors.ReasonForError(err) != want {
			t.Errorf("after %d: %v", left, err)
		}
	}
}
