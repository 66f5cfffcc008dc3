package containerd

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"
)

// settleTime is how long nothing may have been asked of the runtime before a spare slot is
// made, so that making it does not compete with the pod whose slot it replaces.
const settleTime = 20 * time.Millisecond

// trimTime is how long a spare slot waits before the memory of its shim is trimmed, once: not between one
// pod and the next, but when none comes.
const trimTime = 3 * time.Second

// spare keeps slots ready. It is filled when the runtime is at rest and never on a clock.
type spare struct {
	r    *Runtime
	want int

	mu      sync.Mutex
	slots   []*slot
	active  int         // calls in progress
	timer   *time.Timer // runs when the last of them has ended
	trimmer *time.Timer // runs when a slot has waited for a while
	filling bool
	ctx     context.Context
	wg      sync.WaitGroup
}

func newSpare(r *Runtime, want int) *spare { return &spare{r: r, want: want} }

// start lets slots be made until ctx ends.
func (p *spare) start(ctx context.Context) {
	p.mu.Lock()
	p.ctx = ctx
	p.mu.Unlock()
	p.kick()
}

// stop waits for a slot that is being made. The spare ones stay; the next start removes them.
func (p *spare) stop() {
	p.mu.Lock()
	for _, t := range []*time.Timer{p.timer, p.trimmer} {
		if t != nil {
			t.Stop()
		}
	}
	p.ctx = nil
	p.mu.Unlock()
	p.wg.Wait()
}

// busy says that the runtime has something better to do until the function it returns is called.
func (p *spare) busy() (done func()) {
	p.mu.Lock()
	p.active++
	p.mu.Unlock()
	return func() {
		p.mu.Lock()
		p.active--
		p.mu.Unlock()
		p.kick()
	}
}

// kick has the store filled when the runtime has been at rest for a moment.
func (p *spare) kick() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ctx == nil || p.active > 0 || p.filling || len(p.slots) >= p.want {
		return
	}
	if p.timer == nil {
		p.timer = time.AfterFunc(settleTime, p.fill)
		return
	}
	p.timer.Reset(settleTime)
}

func (p *spare) fill() {
	p.mu.Lock()
	if p.ctx == nil || p.active > 0 || p.filling || len(p.slots) >= p.want || !p.r.net.Ready() {
		p.mu.Unlock()
		return
	}
	p.filling = true
	ctx := p.ctx
	p.wg.Add(1)
	p.mu.Unlock()
	defer p.wg.Done()

	s, err := p.r.makeSlot(ctx, podKinds)
	p.mu.Lock()
	p.filling = false
	if err == nil {
		p.slots = append(p.slots, s)
		if p.trimmer == nil {
			p.trimmer = time.AfterFunc(trimTime, p.trim)
		} else {
			p.trimmer.Reset(trimTime)
		}
	}
	p.mu.Unlock()
	if err != nil {
		// The next pod meets the same trouble and reports it; what is logged here is for whom no pod comes.
		p.r.cfg.Log.Warn("no spare sandbox could be made", "err", err)
		return
	}
	p.kick()
}

// get takes a spare slot, or makes one when there is none that fits.
func (p *spare) get(ctx context.Context, kinds []string) (*slot, error) {
	if slices.Equal(kinds, podKinds) {
		if !p.r.net.Ready() {
			return nil, fmt.Errorf("containerd: the pods' network is not ready: the node has no pod range yet")
		}
		for {
			s := p.take()
			if s == nil {
				break
			}
			if p.r.slotWhole(p.r.ns(ctx), s) {
				return s, nil
			}
			if err := p.r.removeSlot(p.r.ns(ctx), s); err != nil {
				p.r.cfg.Log.Warn("a spare sandbox was damaged and could not be removed", "err", err)
			}
		}
	}
	return p.r.makeSlot(p.r.ns(ctx), kinds)
}

func (p *spare) take() *slot {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.slots) == 0 {
		return nil
	}
	s := p.slots[0]
	p.slots = p.slots[1:]
	return s
}

// drop removes the spare slots, whose addresses are no longer the right ones.
func (p *spare) drop(ctx context.Context) {
	for s := p.take(); s != nil; s = p.take() {
		if err := p.r.removeSlot(p.r.ns(ctx), s); err != nil {
			p.r.cfg.Log.Warn("a spare sandbox could not be removed", "err", err)
		}
	}
}
