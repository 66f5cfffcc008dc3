package history

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	"minik8s/internal/hosts"
	"minik8s/internal/membership"
)

// Options is what a run does.
type Options struct {
	// Faults is how many are done, and PerRound how many of them before what was recorded is checked; 0 means 25.
	Faults, PerRound int
	// Seed decides which faults are done to whom, and what the clients ask for.
	Seed uint64
	// Dir is where the records of a failure go.
	Dir string
	// Log is told of each round.
	Log io.Writer
	// KeepGoing goes on after a round in which a promise was not kept, and Save writes the records of good rounds, too.
	KeepGoing, Save bool
	// Long has some masters be away for longer than a request waits for a majority.
	Long bool
}

// Report is what a run has done.
type Report struct {
	Ops, Unknown, Refused int
	Watches, Events       int
	Faults                map[string]int // by kind
	Rounds                int
	Took                  time.Duration
}

func (r *Report) String() string {
	n, kinds := 0, []string{}
	for _, k := range slices.Sorted(maps.Keys(r.Faults)) {
		n += r.Faults[k]
		kinds = append(kinds, fmt.Sprintf("%d %s", r.Faults[k], k))
	}
	return fmt.Sprintf("%d faults (%s) in %d rounds and %.0f s: %d requests, %d refused, %d with unknown outcome; %d watches with %d events",
		n, strings.Join(kinds, "; "), r.Rounds, r.Took.Seconds(), r.Ops, r.Refused, r.Unknown, r.Watches, r.Events)
}

// Masters adds n hosts to a lab that are one cluster's masters, and waits until as many vote as should.
func Masters(ctx context.Context, lab *hosts.Lab, n int) ([]*hosts.Host, error) {
	var all []*hosts.Host
	for i := range n {
		h, err := lab.Add(fmt.Sprint("m", i+1), 1)
		if err != nil {
			return nil, err
		}
		all = append(all, h)
		args := []string{"--role=master"}
		if i > 0 {
			token, err := joining(ctx, all[0])
			if err != nil {
				return nil, err
			}
			args = append(token, args...)
		}
		if err := errors.Join(h.Start(args...), ready(ctx, []*hosts.Host{h})); err != nil {
			return nil, err
		}
	}
	return all, whole(ctx, all)
}

// joining are the flags by which a machine joins a master as a further one.
func joining(ctx context.Context, master *hosts.Host) ([]string, error) {
	line, err := insist(ctx, master, "token", "create", "--role=master") // the CA is published a moment after a master is ready
	if err != nil {
		return nil, err
	}
	return strings.Fields(line)[1:], nil
}

// insist has ctl on a master do something, and tries again while it is refused.
func insist(ctx context.Context, master *hosts.Host, args ...string) (string, error) {
	out, err := master.Ctl(args...)
	for end := time.Now().Add(readyLimit); err != nil && time.Now().Before(end) && ctx.Err() == nil; {
		sleep(ctx, 50*time.Millisecond)
		out, err = master.Ctl(args...)
	}
	return out, err
}

// whole waits until all masters are members and as many vote as should.
func whole(ctx context.Context, all []*hosts.Host) error {
	want := min(len(all)-1+len(all)%2, 5) // an odd number; the others learn, and serve the API
	for end := time.Now().Add(readyLimit); ; sleep(ctx, 20*time.Millisecond) {
		list, err := members(ctx, all[0])
		voters := 0
		for _, m := range list {
			if m.Role != membership.Learner {
				voters++
			}
		}
		if len(list) == len(all) && voters == want {
			return nil
		}
		if time.Now().After(end) || ctx.Err() != nil {
			return fmt.Errorf("%d of %d masters should vote: %+v %w", want, len(all), list, err)
		}
	}
}

// Run does faults to masters while clients use them, and checks what these have seen. The error says which promises were
// not kept.
func Run(ctx context.Context, lab *hosts.Lab, masters []*hosts.Host, o Options) (*Report, error) {
	if o.PerRound == 0 {
		o.PerRound = 25
	}
	began := time.Now()
	report := &Report{Faults: map[string]int{}}
	var errs []error
	for left := o.Faults; left > 0 && ctx.Err() == nil; left -= o.PerRound {
		report.Rounds++
		h, err := round(ctx, lab, masters, report, o, min(left, o.PerRound))
		if err == nil {
			err = Judge(h, o.Dir)
		} else if h != nil {
			err = errors.Join(err, Judge(h, o.Dir), (&problems{all: []Problem{{"", err.Error()}}}).write(h, fmt.Sprintf("%s/seed-%d-round-%d-stuck", o.Dir, h.Seed, h.Round)))
		}
		if o.Save && err == nil {
			err = (&problems{}).write(h, fmt.Sprintf("%s/seed-%d-round-%d", o.Dir, h.Seed, h.Round))
		}
		report.Took = time.Since(began)
		if o.Log != nil {
			fmt.Fprintln(o.Log, report)
		}
		if err != nil {
			if errs = append(errs, err); !o.KeepGoing {
				break
			}
			fmt.Fprintln(o.Log, err)
		}
	}
	return report, errors.Join(append(errs, ctx.Err())...)
}

// dice are those of one who throws them in a round.
func dice(o Options, round, who int) *rand.Rand {
	return rand.New(rand.NewPCG(o.Seed, uint64(round)<<32|uint64(who)))
}

// firstFault is above the numbers of clients and watchers.
const firstFault = 1 << 16

// settleLimit is how long lists and watches may take after the last fault.
const settleLimit = 30 * time.Second

// round does n faults, and waits until all has settled.
func round(ctx context.Context, lab *hosts.Lab, masters []*hosts.Host, report *Report, o Options, n int) (*History, error) {
	h := &History{Seed: o.Seed, Round: report.Rounds, began: time.Now()}
	t, err := newTeam(ctx, lab, masters, h, o)
	if err != nil {
		return nil, err
	}
	defer t.close()
	clients, stopClients := context.WithCancel(ctx)
	watchers, stopWatchers := context.WithCancel(ctx)
	defer stopClients()
	defer stopWatchers()
	var working, watching sync.WaitGroup
	for _, c := range t.clients {
		working.Go(func() { c.run(clients) })
	}
	for _, w := range t.watchers {
		watching.Go(func() { w.run(watchers) })
	}
	d := &driver{masters: masters, seed: func(n int) *rand.Rand { return dice(o, h.Round, firstFault+n) }, long: o.Long, h: h, count: report.Faults}
	for range n {
		if err == nil && ctx.Err() == nil {
			err = d.fault(ctx)
		}
	}
	for _, m := range masters {
		err = errors.Join(err, m.Heal())
	}
	if err == nil {
		err = ready(ctx, masters)
	}
	stopClients()
	working.Wait()
	if err == nil {
		err = t.settle(ctx)
	}
	stopWatchers()
	watching.Wait()
	report.count(h)
	return h, err
}

func (r *Report) count(h *History) {
	for _, op := range h.Ops {
		r.Ops++
		switch op.Outcome {
		case Unknown:
			r.Unknown++
		case Refused:
			r.Refused++
		}
	}
	for _, w := range h.Watches {
		r.Watches++
		r.Events += len(w.Events)
	}
}
