package scheduler

import (
	"context"
	"time"
)

// Usage is what a node uses now: thousandths of a core, and bytes of working set.
type Usage struct{ CPUMillis, MemoryBytes int64 }

// usageEvery is how often the nodes are asked what they use, while the strategy needs it, and usageFirst how soon again while
// none has said: a rate needs two samples.
const (
	usageEvery = 10 * time.Second
	usageFirst = 2 * time.Second
)

// nodeUsage is the Usage of a node.
type nodeUsage struct {
	node string
	Usage
}

// usage is the asking. It goes on only while the strategy needs it: who is not asked does not measure.
type usage struct{ stop context.CancelFunc }

func (s *Scheduler) followUsage(ctx context.Context, want bool) {
	switch {
	case want && s.usage == nil && s.cfg.Usage != nil:
		ctx, stop := context.WithCancel(ctx)
		s.usage = &usage{stop}
		s.tasks.Go(func(context.Context) error {
			s.askUsage(ctx)
			return nil
		})
	case !want && s.usage != nil:
		s.usage.stop()
		s.usage = nil
	}
}

// askUsage asks until ctx ends. Of a node that does not say what it uses the last answer counts.
func (s *Scheduler) askUsage(ctx context.Context) {
	for {
		var names []string
		for _, node := range s.nodes.List() {
			names = append(names, node.Name)
		}
		pause := usageFirst
		for name, u := range s.cfg.Usage(ctx, names) {
			pause = usageEvery
			s.enqueue(clusterEvent{usage: &nodeUsage{name, u}})
		}
		t := time.NewTimer(pause)
		select {
		case <-t.C:
		case <-ctx.Done():
			t.Stop()
			return
		}
	}
}
