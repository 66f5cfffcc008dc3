package embed

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/containerd/containerd/gc"
	"github.com/containerd/containerd/metadata"
	"github.com/containerd/containerd/plugin"
	"github.com/containerd/log"
)

// collector is containerd's metadata as the scheduler of its garbage collection sees it. If the first collection fails,
// that scheduler dereferences a nil pointer (run in gc/scheduler/scheduler.go), which would end the daemon: on a full
// disk, or when it stops in the middle of a collection. So a failure of the first is logged here, and counts as a
// collection that found nothing. The next deletion brings another.
type collector struct {
	*metadata.DB
	called atomic.Bool
}

// GarbageCollect is that of the database, but for the first failure.
func (c *collector) GarbageCollect(ctx context.Context) (gc.Stats, error) {
	stats, err := c.DB.GarbageCollect(ctx)
	if first := !c.called.Swap(true); first && err != nil {
		if ctx.Err() == nil {
			log.G(ctx).WithError(err).Error("garbage collection failed")
		}
		return nothing{}, nil
	}
	return stats, err
}

// nothing are the statistics of a collection that did not happen.
type nothing struct{}

// Elapsed implements gc.Stats.
func (nothing) Elapsed() time.Duration { return 0 }

// collecting is the scheduler's plugin r, over a collector.
func collecting(r *plugin.Registration) *plugin.Registration {
	wrapped := *r
	wrapped.InitFn = func(ic *plugin.InitContext) (any, error) {
		db, err := ic.Get(plugin.MetadataPlugin)
		if err != nil {
			return nil, err
		}
		only := plugin.NewPluginSet()
		metadataPlugin := &plugin.Registration{Type: plugin.MetadataPlugin, ID: "bolt",
			InitFn: func(*plugin.InitContext) (any, error) { return &collector{DB: db.(*metadata.DB)}, nil }}
		if err := only.Add(metadataPlugin.Init(plugin.NewContext(ic.Context, metadataPlugin, only, "", ""))); err != nil {
			return nil, err
		}
		inner := plugin.NewContext(ic.Context, r, only, "", "")
		inner.Config, inner.Meta = ic.Config, ic.Meta
		return r.InitFn(inner)
	}
	return &wrapped
}
