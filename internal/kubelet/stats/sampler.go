package stats

import (
	"context"
	"sync"
	"time"

	"minik8s/internal/kubelet/cri"
	"minik8s/internal/rates"
)

const (
	// history is how many samples are kept of each container and of the node, and podHistory of each pod as a whole.
	history    = 60
	podHistory = 4
	// rarely is how often what is in cri.Rest is read, and where the machine's default routes lead.
	rarely = 10 * time.Second
	// forgotten is when a history ends after the last question.
	forgotten = 15 * time.Minute
)

// Source reads what runs now: see cri.Runtime.
type Source interface {
	Stats(ctx context.Context, rest func(cgroup string) bool) ([]cri.Stats, error)
}

// Sample is what was used at one time.
type Sample struct {
	Time time.Time
	cri.Usage
	Network *cri.Network // of a pod as a whole; nil: none of its own
	// Interfaces are the machine's, in the order of Interfaces.Read.
	Interfaces []cri.Network
}

// Series is a node, a pod as a whole, or a container, with its newest samples, oldest first. There is at least one.
// Samples must not be changed.
type Series struct {
	// PodUID is empty for the node, Container and ContainerID for it and a pod as a whole.
	PodUID, Container, ContainerID string
	Cgroup                         string
	Started                        time.Time
	Samples                        []Sample
}

// Last is the newest sample.
func (s *Series) Last() *Sample { return &s.Samples[len(s.Samples)-1] }

// Rate returns how much CPU is used, in billionths of a core, and the time over which that is averaged: at least window
// where the history goes back so far, never more than rates.Longest. ok is false if that cannot be said (yet).
func (s *Series) Rate(window time.Duration) (nanocores uint64, over time.Duration, ok bool) {
	rate, over, ok := rates.Of(len(s.Samples), func(i int) rates.Point { return rates.Point{Time: s.Samples[i].Time, Value: s.Samples[i].CPU} }, window)
	return uint64(rate), over, ok
}

// Ask says what somebody wants to know.
type Ask struct {
	// MaxAge is how old the newest sample may be; a second is enough for everybody.
	MaxAge time.Duration
	// Samples bounds how many samples of each are returned, the newest; 0: one, and what Rates needs.
	Samples int
	// Rates: the samples have to tell rates, with a window of so much, at least of the node and of what ran for more than
	// a second.
	Rates time.Duration
}

// Reading is an answer.
type Reading struct {
	Node Series
	// Pods are those that run, as a whole, and Containers those that run, in no order.
	Pods, Containers []Series
}

// Sampler samples. Its methods are safe for concurrent use.
type Sampler struct {
	source Source
	node   func(*Sample) error
	now    func() time.Time
	wait   func(context.Context, time.Duration) error

	mu     sync.Mutex
	last   time.Time
	rest   time.Time         // when cri.Rest was read of all
	series map[string]*known // by cgroup; "/" is the node
	forget *time.Timer
}

// known is a series, without its samples, and its past.
type known struct {
	Series
	past
}

// New returns a sampler of the containers of a runtime, on this machine.
func New(source Source) *Sampler {
	return &Sampler{source: source, node: (&whole{Interfaces{Ways: rarely}}).read, now: time.Now, wait: sleep}
}

func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Read answers. The error is the runtime's or ctx'.
func (s *Sampler) Read(ctx context.Context, ask Ask) (*Reading, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.refresh(ctx, max(ask.MaxAge, rates.Closest)); err != nil {
		return nil, err
	}
	if ask.Rates > 0 {
		node := s.series[machine].answer(ask)
		if _, _, ok := node.Rate(ask.Rates); !ok {
			s.mu.Unlock()
			err := s.wait(ctx, rates.Closest)
			s.mu.Lock()
			if err == nil {
				err = s.refresh(ctx, rates.Closest)
			}
			if err != nil {
				return nil, err
			}
		}
	}
	return s.reading(ask), nil
}

// machine is the cgroup of all there is.
const machine = "/"

// refresh takes a sample if the newest is older than maxAge. The caller has locked s.
func (s *Sampler) refresh(ctx context.Context, maxAge time.Duration) error {
	now := s.now()
	if age := now.Sub(s.last); s.series != nil && age >= 0 && age < maxAge {
		return nil
	}
	all := s.series == nil || now.Sub(s.rest) >= rarely || now.Before(s.rest)
	stats, err := s.source.Stats(ctx, func(cgroup string) bool { return all || s.series[cgroup] == nil })
	if err != nil {
		return err
	}
	node := Sample{Time: now}
	if err := s.node(&node); err != nil {
		return err
	}
	next := make(map[string]*known, len(stats)+1)
	next[machine] = s.series[machine]
	if next[machine] == nil {
		next[machine] = &known{Series: Series{Cgroup: machine}}
	}
	next[machine].add(node, history)
	for _, x := range stats {
		old := s.series[x.Cgroup]
		if old == nil || old.ContainerID != x.ContainerID {
			old = &known{Series: Series{PodUID: x.PodUID, Container: x.Container, ContainerID: x.ContainerID, Cgroup: x.Cgroup, Started: x.Started}}
		}
		if !all && old.last != nil {
			x.Rest = old.last.Rest
			if x.Peak > 0 { // or the kernel does not say
				x.Peak = max(x.Peak, x.Memory)
			}
		}
		kept := history
		if x.PodUID != "" && x.ContainerID == "" {
			kept = podHistory
		}
		old.add(Sample{Time: x.Time, Usage: x.Usage, Network: x.Network}, kept)
		next[x.Cgroup] = old
	}
	s.series, s.last = next, now
	if all {
		s.rest = now
	}
	if s.forget == nil {
		s.forget = time.AfterFunc(forgotten, s.drop)
	} else {
		s.forget.Reset(forgotten)
	}
	return nil
}

// drop forgets everything.
func (s *Sampler) drop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.series = nil
}

// reading is what is known, cut to what was asked for. The caller has locked s.
func (s *Sampler) reading(ask Ask) *Reading {
	out := &Reading{}
	for _, x := range s.series {
		part := x.answer(ask)
		switch {
		case part.Cgroup == machine:
			out.Node = part
		case part.ContainerID == "":
			out.Pods = append(out.Pods, part)
		default:
			out.Containers = append(out.Containers, part)
		}
	}
	return out
}

// answer is the series with the samples that are asked for.
func (k *known) answer(ask Ask) Series {
	out := k.Series
	window := max(ask.Rates, rates.Closest)
	out.Samples = k.newest(func(n int, oldest time.Time) bool {
		return n >= ask.Samples && (ask.Rates == 0 || k.last.Time.Sub(oldest) >= window)
	})
	return out
}
