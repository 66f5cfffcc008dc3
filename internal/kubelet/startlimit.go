package kubelet

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"time"

	"minik8s/internal/kubelet/work"
)

// startLimit bounds how many containers are started at a time. A start is CPU-bound: more of them at once only slow
// each other down.
type startLimit chan struct{}

// maxHold is how long a start counts at most, so that one that hangs does not delay others.
const maxHold = 2 * time.Second

func newStartLimit() startLimit { return make(startLimit, max(4, 2*runtime.NumCPU())) }

// maxTurn is how long preparing a pod uses a turn at most: what takes longer waits for the API, a disk or the kernel, and not
// for the processors.
const maxTurn = 50 * time.Millisecond

// prepare does a part of what comes before a pod's sandbox, when its turn has come.
func (k *Kubelet) prepare(ctx context.Context, do func() error) error {
	if err := k.cfg.Work.Acquire(ctx, work.Prepare); err != nil {
		return err
	}
	release := sync.OnceFunc(k.cfg.Work.Release)
	defer time.AfterFunc(maxTurn, release).Stop()
	defer release()
	return do()
}

// errEnding is the error of a start that is cancelled because the pod is to end.
var errEnding = errors.New("the pod is to end")

// acquire waits until the start may begin, or until ending is closed. release ends its turn; it may be called more
// than once.
func (g startLimit) acquire(ctx context.Context, ending <-chan struct{}) (release func(), err error) {
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
