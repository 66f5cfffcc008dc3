package registry

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"testing"
)

// Of each group one has the turn, whatever others it takes and in which order; nobody is left waiting, and nothing is kept.
func TestTurns(t *testing.T) {
	var all turns
	var wg sync.WaitGroup
	names := []string{"a", "b", "c", "d"}
	busy := map[string]*sync.Mutex{}
	for _, n := range names {
		busy[n] = &sync.Mutex{}
	}
	for seed := range uint64(50) {
		wg.Go(func() {
			r := rand.New(rand.NewPCG(seed, 1))
			for range 200 {
				groups := []string{}
				for _, i := range r.Perm(len(names))[:1+r.IntN(3)] {
					groups = append(groups, names[i], names[i])
				}
				done, err := all.take(context.Background(), groups)
				if err != nil {
					t.Error(err)
					return
				}
				for i := 0; i < len(groups); i += 2 {
					if !busy[groups[i]].TryLock() {
						t.Errorf("two have %s", groups[i])
						return
					}
				}
				for i := 0; i < len(groups); i += 2 {
					busy[groups[i]].Unlock()
				}
				done.end()
			}
		})
	}
	wg.Wait()
	if len(all.of) != 0 {
		t.Errorf("kept: %v", all.of)
	}
}

// Who gives up waiting takes nothing along.
func TestTurnGivenUp(t *testing.T) {
	var all turns
	done, err := all.take(context.Background(), []string{"b"})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := all.take(ctx, []string{"b", "a"}); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	free, err := all.take(context.Background(), []string{"a"})
	if err != nil {
		t.Fatal(err)
	}
	free.end()
	done.end()
	if len(all.of) != 0 {
		t.Errorf("kept: %v", all.of)
	}
}
