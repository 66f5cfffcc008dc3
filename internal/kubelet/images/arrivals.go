package images

import (
	"context"
	"sync"
)

// arrivals wakes waiters for an image when images were added to the node.
type arrivals struct {
	mu sync.Mutex
	ch chan struct{}
}

// next returns a channel that is closed when images are added. Call it before checking whether the image is present.
func (a *arrivals) next() <-chan struct{} {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.ch == nil {
		a.ch = make(chan struct{})
	}
	return a.ch
}

func (a *arrivals) announce() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.ch != nil {
		close(a.ch)
		a.ch = nil
	}
}

// unlessArrived runs a pull and cancels it if the image is added in another way: from an archive that was still being
// read when the pod was created, or by an import. arrived says that this happened.
func (m *Manager) unlessArrived(ctx context.Context, image string, next <-chan struct{}, pull func(context.Context) error) (arrived bool, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	came, done := false, make(chan struct{})
	go func() {
		defer close(done)
		for {
			select {
			case <-next:
			case <-ctx.Done():
				return
			}
			next = m.arrivals.next()
			if got, err := m.runtime.ImageStatus(ctx, image); err == nil && got != nil {
				came = true
				cancel()
				return
			}
		}
	}()
	err = pull(ctx)
	cancel()
	<-done
	return came && err != nil, err
}
