package embed

import (
	"context"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/containerd/containerd/gc"
	"github.com/containerd/containerd/metadata"
	"github.com/containerd/containerd/plugin"
	bolt "go.etcd.io/bbolt"

	"minik8s/internal/kubelet/containerd/task"
)

// Garbage collection that fails, also the first one, ends nothing.
func TestFailedCollection(t *testing.T) {
	db, err := bolt.Open(filepath.Join(t.TempDir(), "meta.db"), 0o600, nil)
	if err != nil {
		t.Fatal(err)
	}
	md := metadata.NewDB(db, nil, nil)
	if err := md.Init(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil { // as when the daemon stops
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	s := &server{}
	l := &loader{server: s, ctx: ctx, root: t.TempDir(), set: plugin.NewPluginSet()}
	list := s.registrations(task.Config{})
	at := slices.IndexFunc(list, func(r *plugin.Registration) bool { return r.Type == plugin.GCPlugin })
	metadataPlugin := &plugin.Registration{Type: plugin.MetadataPlugin, ID: "bolt", InitFn: func(*plugin.InitContext) (any, error) { return md, nil }}
	if err := l.set.Add(metadataPlugin.Init(l.context(metadataPlugin))); err != nil {
		t.Fatal(err)
	}
	if err := l.load(list[at]); err != nil {
		t.Fatal(err)
	}
	scheduler, err := l.set.Get(plugin.GCPlugin)
	if err != nil {
		t.Fatal(err)
	}
	for n := range 3 {
		stats, err := scheduler.(interface {
			ScheduleAndWait(context.Context) (gc.Stats, error)
		}).ScheduleAndWait(ctx)
		if first := n == 0; first != (err == nil) || first && stats.Elapsed() != 0 {
			t.Errorf("collection %d: %v, %v", n, stats, err)
		}
	}
}
