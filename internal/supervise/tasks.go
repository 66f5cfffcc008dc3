package supervise

import (
	"context"
	"fmt"
	"runtime/debug"
	"sync"
)

// Panic is the error made from a panic.
type Panic struct {
	Value any
	Stack string
}

// Error implements error. It omits the stack, which is for the log.
func (p *Panic) Error() string { return fmt.Sprintf("panic: %v", p.Value) }

// Safe calls do. If do panics, the error is a *Panic.
func Safe(do func() error) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = &Panic{Value: v, Stack: string(debug.Stack())}
		}
	}()
	return do()
}

// Tasks are the goroutines of one part. They end together: when one fails or panics, the others are cancelled, so that
// nothing is left running when the part is started again.
type Tasks struct {
	ctx    context.Context
	cancel context.CancelFunc
	wg     sync.WaitGroup
	once   sync.Once
	err    error
}

// NewTasks makes tasks that end when ctx ends, or earlier.
func NewTasks(ctx context.Context) *Tasks {
	t := &Tasks{}
	t.ctx, t.cancel = context.WithCancel(ctx)
	return t
}

// Go starts a task. Tasks may start other tasks.
func (t *Tasks) Go(task func(ctx context.Context) error) {
	t.wg.Add(1)
	go func() {
		defer t.wg.Done()
		if err := Safe(func() error { return task(t.ctx) }); err != nil {
			t.once.Do(func() { t.err = err })
			t.cancel()
		}
	}()
}

// Source is a task that others wait for, such as an informer. It runs until ctx ends, and calls ready once, when its
// view is complete.
type Source interface {
	Run(ctx context.Context, ready func()) error
}

// InOrder starts each source when the one before is ready, and calls then when all are ready.
func (t *Tasks) InOrder(then func(), sources ...Source) {
	if len(sources) == 0 {
		then()
		return
	}
	t.Go(func(ctx context.Context) error {
		return sources[0].Run(ctx, func() { t.InOrder(then, sources[1:]...) })
	})
}

// Wait waits until all tasks have ended, and returns the error of the one that failed first.
func (t *Tasks) Wait() error {
	t.wg.Wait()
	t.cancel()
	return t.err
}
