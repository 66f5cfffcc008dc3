package kubelet

import (
	"context"
	"sync"
)

// imageNews tells those who wait for an image that others have come to the node.
type imageNews struct {
	mu sync.Mutex
	ch chan struct{}
}

// next is closed at the next news. Ask for it before looking whether the image is there.
func (n *imageNews) next() <-chan struct{} {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.ch == nil {
		n.ch = make(chan struct{})
	}
	return n.ch
}

func (n *imageNews) tell() {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.ch != nil {
		close(n.ch)
		n.ch = nil
	}
}

// untilPresent runs a pull that is no longer needed once the image has come by another way: an archive
// that was still being read when the pod was made, an import by hand. It says whether that happened.
func (k *Kubelet) untilPresent(ctx context.Context, ref string, news <-chan struct{}, pull func(context.Context) error) (bool, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	came, done := false, make(chan struct{})
	go func() {
		defer close(done)
		for {
			select {
			case <-news:
			case <-ctx.Done():
				return
			}
			news = k.imageNews.next()
			if image, err := k.runtime.ImageStatus(ctx, ref); err == nil && image != nil {
				came = true
				cancel()
				return
			}
		}
	}()
	err := pull(ctx)
	cancel()
	<-done
	return came && err != nil, err
}
