package etcd

import (
	"context"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"minik8s/internal/store"
)

// etcd writes its file in batches, and newer changes are only in memory. Wherever the border between the two is,
// history is complete and in order.
func TestHistoryAcrossTheFileAndMemory(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for _, c := range []struct{ inFile, inMemory int }{{0, 40}, {40, 0}, {1, 40}, {10, 10}, {40, 1}, {40, 40}, {300, 1200}, {1200, 300}} {
		t.Run(fmt.Sprint(c.inFile, " and ", c.inMemory), func(t *testing.T) {
			s, err := Open(ctx, Config{Dir: t.TempDir(), Log: slog.New(slog.NewTextHandler(t.Output(), nil))})
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			first, err := s.Revision(ctx)
			if err != nil {
				t.Fatal(err)
			}
			var want []int64
			write := func(n int) {
				for range n {
					rev, err := s.Write(ctx, store.Create(fmt.Sprintf("/a/%d", len(want)), []byte("x")))
					if err != nil {
						t.Fatal(err)
					}
					want = append(want, rev)
				}
			}
			write(c.inFile)
			s.member.server.Backend().ForceCommit()
			write(c.inMemory)
			w, err := s.History(ctx, "/a/", first)
			if err != nil {
				t.Fatal(err)
			}
			defer w.Stop()
			var got []int64
			for b := range w.Batches() {
				for _, e := range b.Events {
					got = append(got, e.KV.Modified)
				}
			}
			if fmt.Sprint(got) != fmt.Sprint(want) || w.Err() != nil {
				t.Errorf("%d changes, want %d, %v", len(got), len(want), w.Err())
			}
		})
	}
}
