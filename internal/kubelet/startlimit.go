package kubelet

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"time"
)

// startLimit bounds how many containers are started at a time. A start is work for the processor, so that
// more of them at once only take turns, and finish later all together.
type startLimit chan struct{}

// maxHold is how long a start may keep others waiting; one that hangs hurts only itself.
const maxHold = 2 * time.Second

func newStartLimit() startLimit { return make(startLimit, max(4, 2*runtime.NumCPU())) }

// errEnding is of a start that is not wanted any more.
var errEnding = errors.New("the pod is to end")

// acquire waits for a place, but not for a pod that is to end. leave gives it back; it may be called
// more than once.
func (g startLimit) acquire(ctx context.Context, ending <-chan struct{}) (leave func(), err error) {
	select {
	case g <- struct{}{}:
	case <-ending:
		return nil, errEnding
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	var once sync.Once
	free := func() { once.Do(func() { <-g }) }
	t := time.AfterFunc(maxHold, free)
	return func() {
		t.Stop()
		free()
	}, nil
}
