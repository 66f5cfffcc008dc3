package containerd

import (
	"context"
	"sync"

	"minik8s/internal/kubelet/cri"
)

// maxQueue is how many events are queued for a slow subscriber before they are replaced by one with an empty PodUID,
// which means: look at everything.
const maxQueue = 1024

// broadcaster sends each event to every subscriber and never waits for one.
type broadcaster struct {
	mu   sync.Mutex
	subs map[*subscriber]struct{}
}

type subscriber struct {
	queue []cri.Event // guarded by the broadcaster's lock
	wake  chan struct{}
}

func (b *broadcaster) send(e cri.Event) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for s := range b.subs {
		if len(s.queue) >= maxQueue {
			s.queue = append(s.queue[:0], cri.Event{})
		} else {
			s.queue = append(s.queue, e)
		}
		select {
		case s.wake <- struct{}{}:
		default:
		}
	}
}

func (b *broadcaster) subscribe(ctx context.Context) <-chan cri.Event {
	s := &subscriber{wake: make(chan struct{}, 1)}
	out := make(chan cri.Event)
	b.mu.Lock()
	if b.subs == nil {
		b.subs = map[*subscriber]struct{}{}
	}
	b.subs[s] = struct{}{}
	b.mu.Unlock()
	go func() {
		defer close(out)
		defer func() {
			b.mu.Lock()
			delete(b.subs, s)
			b.mu.Unlock()
		}()
		for {
			b.mu.Lock()
			queue := s.queue
			s.queue = nil
			b.mu.Unlock()
			for _, e := range queue {
				select {
				case out <- e:
				case <-ctx.Done():
					return
				}
			}
			if len(queue) > 0 {
				continue
			}
			select {
			case <-s.wake:
			case <-ctx.Done():
				return
			}
		}
	}()
	return out
}
