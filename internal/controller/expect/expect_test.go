package expect

import (
	"testing"
	"time"

	"minik8s/internal/controller/loop"
)

func TestExpectations(t *testing.T) {
	now := time.Unix(1000, 0)
	e, key := New(func() time.Time { return now }), loop.Key{Namespace: "default", Name: "web"}
	settled := func(want bool) {
		t.Helper()
		if got, wait := e.Settled(key); got != want || !got && wait <= 0 {
			t.Fatalf("settled: %v, in %s, want %v", got, wait, want)
		}
	}
	settled(true)
	e.Creates(key, 2)
	settled(false)
	e.Created(key, 1)
	settled(false)
	e.Created(key, 1)
	settled(true)
	e.Created(key, 1) // one that nobody announced
	settled(true)

	e.Deletes(key, "a", "b")
	e.Deleted(key, "c")
	settled(false)
	e.Deleted(key, "a")
	e.Deleted(key, "a") // said twice
	settled(false)
	e.Deleted(key, "b")
	settled(true)

	e.Creates(key, 1)
	if ok, _ := e.Settled(loop.Key{Name: "other"}); !ok {
		t.Error("another owner has to wait")
	}
	now = now.Add(Timeout)
	settled(true)
	e.Creates(key, 1)
	e.Forget(key)
	settled(true)
}
