package main

import (
	"context"
	"fmt"
	"io"
	"sync"
	"time"
)

// longest is how long it may take until what is waited for is seen.
const longest = 90 * time.Second

// phase is a time in which the client asks equally often, for equal work.
type phase struct {
	rate int           // a second
	work time.Duration // CPU time that a request costs who answers it
	what string
	// until is what has to be seen before it may end, and hold how long it goes on then, to be seen in the picture.
	until func(r *record, before, now sample) bool
	hold  time.Duration
}

// phases are those of the demo. A replica is to use half of the tenth of a core that it requests, that is, to answer five requests
// of 10 ms a second: two or three replicas are to follow 10, and six 28. As many are asked still while replicas are taken away, for
// no work, since it is then that one could fail.
func phases() []phase {
	const work = 10 * time.Millisecond
	alone := func(r *record, _, now sample) bool {
		return now.wanted == r.least && now.pods == r.least && len(now.ready) == r.least
	}
	return []phase{
		{3, work, "one replica has little to do", alone, 7 * time.Second},
		{10, work, "there are more replicas, and each has enough to do", grown, 6 * time.Second},
		{28, work, "there are yet more", grown, 8 * time.Second},
		{28, 0, "one replica is left", alone, 4 * time.Second},
		{3, work, "one replica has little to do", alone, 5 * time.Second},
	}
}

// grown reports whether the autoscaler has all the replicas it wants, more than before, and has nothing to add. Its target has a
// tolerance of a tenth.
func grown(r *record, before, now sample) bool {
	return now.wanted > before.wanted && len(now.ready) == now.wanted && now.used >= 0 && 10*now.used <= 11*r.target
}

// play has the client ask so, one phase after the other.
func play(ctx context.Context, o *observer, a *asker, all []phase, out io.Writer) error {
	for i, p := range all {
		before, err := o.last()
		if err != nil {
			return err
		}
		fmt.Fprintf(out, "\nThe client asks %d times a second for %s of work, %d thousandths of a core in all. We wait until %s.\n",
			p.rate, p.work, p.rate*int(p.work/time.Millisecond), p.what)
		a.ask(p.rate, p.work)
		o.asks(p.rate, p.work)
		if i == 0 {
			defer o.follow(ctx, a)()
		}
		for end := time.Now().Add(longest); ; {
			now, err := o.last()
			if err != nil {
				return err
			}
			if p.until(&o.record, before, now) {
				break
			}
			if time.Now().After(end) {
				return fmt.Errorf("at %d requests a second for %s of work it was not seen within %s that %s: %s", p.rate, p.work, longest, p.what, now)
			}
			if err := pause(ctx, often); err != nil {
				return err
			}
		}
		if err := pause(ctx, p.hold); err != nil {
			return err
		}
	}
	return nil
}

// follow has the client ask and samples be taken, until what it returns is called: then all requests have ended.
func (o *observer) follow(ctx context.Context, a *asker) (end func()) {
	ctx, stop := context.WithCancel(ctx)
	var done sync.WaitGroup
	done.Go(func() { o.run(ctx) })
	done.Go(func() { a.run(ctx, o.answered) })
	return func() {
		stop()
		done.Wait()
	}
}
