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
	// press is the path of the switch that the client asks the Service for, too: higher, which gives the pod that answers a tenth of
	// a core more to do, so often at the beginning; or lower, again and again, since it is not known which pod answers next.
	press string
	times int
}

// The paths of the image's switch.
const (
	higher = "higher"
	lower  = "lower"
)

// phases are those of the demo. A replica is to use half of the tenth of a core that it requests, that is, to answer five requests
// of 10 ms a second: two or three replicas are to follow 10, and six 28. As many are asked still while replicas are taken away, for
// no work, since it is then that one could fail. At last the image's switch makes the load: three tenths of a core, which are one
// replica's alone and not shared with new ones, and for which there are six replicas all the same, since the autoscaler goes by
// their average.
func phases() []phase {
	const work = 10 * time.Millisecond
	alone := func(r *record, _, now sample) bool {
		return now.wanted == r.least && now.pods == r.least && len(now.ready) == r.least
	}
	return []phase{
		{rate: 3, work: work, what: "one replica has little to do", until: alone, hold: 7 * time.Second},
		{rate: 10, work: work, what: "there are more replicas, and each has enough to do", until: grown, hold: 6 * time.Second},
		{rate: 28, work: work, what: "there are yet more", until: grown, hold: 8 * time.Second},
		{rate: 28, what: "one replica is left", until: alone, hold: 4 * time.Second},
		{rate: 10, what: "there are more replicas", until: grown, hold: 6 * time.Second, press: higher, times: 3},
		{rate: 10, what: "one replica is left", until: alone, hold: 5 * time.Second, press: lower},
	}
}

// pressed says what a phase does with the switch.
func (p *phase) pressed() string {
	switch p.press {
	case higher:
		return fmt.Sprintf(", and GET /%s %d times, so that a pod has %d more to do", higher, p.times, 100*p.times)
	case lower:
		return fmt.Sprintf(", and GET /%s until there is nothing more to do", lower)
	}
	return ""
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
		fmt.Fprintf(out, "\nThe client asks %d times a second for %s of work, %d thousandths of a core in all%s. We wait until %s.\n",
			p.rate, p.work, p.rate*int(p.work/time.Millisecond), p.pressed(), p.what)
		a.ask(p.rate, p.work)
		o.asks(&p)
		for range p.times {
			if _, err := a.get(ctx, p.press); err != nil {
				return err
			}
		}
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
			for range now.ready { // until every pod has been asked, by chance
				if p.press != lower {
					break
				}
				if _, err := a.get(ctx, lower); err != nil {
					return err
				}
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
