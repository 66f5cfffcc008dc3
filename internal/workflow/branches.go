package workflow

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"minik8s/internal/clock"
	"minik8s/internal/supervise"
	"minik8s/internal/workflow/asl"
)

const (
	// maxItems is how many items of a Map are worked on at a time, if it does not say fewer, as at AWS.
	maxItems = 40
	// maxLive is how many branches of a run have a goroutine of their own, wherever they are in each other. Those for which there is no place
	// run one after the other, in the goroutine of the state around them.
	maxLive = 1000
)

// parallel runs the branches of a Parallel state.
func (x *run) parallel(ctx context.Context, f frame, at place, s *asl.State, effective any) (any, *asl.Error, error) {
	most := len(s.Branches)
	began := x.beginnings(f, at, most, most)
	return x.sideBySide(ctx, most, most, func(ctx context.Context, i int) (any, *asl.Error, error) {
		b := frame{branch: below(at, i), item: f.item}
		b.began, b.before = began(i)
		b.entered = b.began
		return x.machine(ctx, b, s.Branches[i], effective)
	})
}

// each runs the machine of a Map state for each item.
func (x *run) each(ctx context.Context, f frame, at place, s *asl.State, effective any, c *asl.Context) (any, *asl.Error, error) {
	var most int
	items, failed, err := evaluate(ctx, x, func() (items []any, failed *asl.Error) {
		if items, failed = s.Items(effective, c); failed == nil {
			most, failed = s.Concurrency(effective, c)
		}
		return items, failed
	})
	if failed != nil || err != nil {
		return nil, failed, err
	}
	if most <= 0 || most > maxItems {
		most = maxItems
	}
	began := x.beginnings(f, at, len(items), most)
	return x.sideBySide(ctx, len(items), most, func(ctx context.Context, i int) (any, *asl.Error, error) {
		b := frame{branch: below(at, i), item: map[string]any{"Item": map[string]any{"Index": int64(i), "Value": items[i]}}}
		b.began, b.before = began(i)
		b.entered = b.began
		own := &asl.Context{Object: x.context(b, s, nil), Random: c.Random + "/" + b.branch}
		input, failed, err := evaluate(ctx, x, func() (any, *asl.Error) { return s.Item(effective, items[i], own) })
		if failed != nil || err != nil {
			return nil, failed, err
		}
		return x.machine(ctx, b, s.Branches[0], input)
	})
}

// below is the name of a branch of the state whose step is at a place.
func below(at place, i int) string { return fmt.Sprintf("%s-%d", at, i) }

// beginnings says when the branches of a state begin, of which so many run at a time: now, or, if they may have begun under another master, when
// the state was, or when a branch before them had ended. What waits in a branch waits from then on. Whether another master had the state is asked of
// the steps and not of the times, since its clock may be ahead of this one's.
func (x *run) beginnings(f frame, at place, n, most int) func(i int) (began time.Time, before bool) {
	if !f.before {
		return func(int) (time.Time, bool) { return clock.Now(), false }
	}
	var ends []time.Time
	for i := range n {
		if t, ok := x.past.ended[below(at, i)]; ok {
			ends = append(ends, t)
		}
	}
	slices.SortFunc(ends, time.Time.Compare)
	return func(i int) (time.Time, bool) {
		switch {
		case i < most:
			return f.began, true
		case i-most < len(ends):
			return ends[i-most], true
		}
		return clock.Now(), false
	}
}

// sideBySide runs n machines, so many at a time, and lists their results. When one fails the others end.
func (x *run) sideBySide(ctx context.Context, n, most int, one func(ctx context.Context, i int) (any, *asl.Error, error)) (any, *asl.Error, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var (
		mu      sync.Mutex
		next    int // the machine that is begun next
		running = 1
		bytes   int
		failed  *asl.Error
		broken  error
		wg      sync.WaitGroup
		work    func()
	)
	results := make([]any, n)
	take := func() (i int, ok bool) {
		mu.Lock()
		defer mu.Unlock()
		if next >= n || ctx.Err() != nil {
			return 0, false
		}
		i = next
		if next++; next < n && running < most {
			select {
			case x.live <- struct{}{}:
				running++
				wg.Go(func() {
					defer func() { <-x.live }()
					work()
				})
			default:
			}
		}
		return i, true
	}
	work = func() {
		for {
			i, ok := take()
			if !ok {
				return
			}
			var result any
			var f *asl.Error
			err := supervise.Safe(func() (err error) {
				result, f, err = one(ctx, i)
				return err
			})
			mu.Lock()
			results[i] = result
			if bytes += asl.Size(result); bytes > asl.MaxMade && f == nil && err == nil {
				f = &asl.Error{Name: asl.ErrDataLimit, Cause: fmt.Sprintf("the branches of the state have come to more than %d bytes together", asl.MaxMade)}
			}
			if (f != nil || err != nil) && failed == nil && broken == nil {
				failed, broken = f, err
				cancel()
			}
			mu.Unlock()
		}
	}
	work()
	wg.Wait()
	switch {
	case failed != nil:
		e := *failed
		e.Branch = true
		return nil, &e, nil
	case broken != nil:
		return nil, nil, broken
	}
	return results, nil, ctx.Err()
}
