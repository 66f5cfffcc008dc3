package sandbox

import (
	"context"
	"sync"
	"time"
)

// settleTime is how long the runtime must have been idle before a sandbox is made in advance, so that making it does
// not compete with the pod whose sandbox it replaces.
const settleTime = 20 * time.Millisecond

// warm holds the sandboxes made in advance. They are made when the runtime is idle, not periodically.
type warm struct {
	mu      sync.Mutex
	ready   []*Sandbox
	active  int         // calls in progress
	timer   *time.Timer // runs settleTime after the last of them has ended
	filling bool
	dropped int             // how often Drop was called: a sandbox being made meanwhile is dropped, too
	ctx     context.Context // nil: none are made
	wg      sync.WaitGroup
}

// Start starts making sandboxes in advance, until ctx ends.
func (p *Pool) Start(ctx context.Context) {
	p.warm.mu.Lock()
	p.warm.ctx = ctx
	p.warm.mu.Unlock()
	p.Kick()
}

// Stop makes no more sandboxes, and waits for one that is being made. Existing ones stay; Drop or the next start
// removes them.
func (p *Pool) Stop() {
	p.warm.mu.Lock()
	if p.warm.timer != nil {
		p.warm.timer.Stop()
	}
	p.warm.ctx = nil
	p.warm.mu.Unlock()
	p.warm.wg.Wait()
}

// Busy marks the runtime as busy until done is called: no sandbox is made in advance meanwhile.
func (p *Pool) Busy() (done func()) {
	p.warm.mu.Lock()
	p.warm.active++
	p.warm.mu.Unlock()
	return func() {
		p.warm.mu.Lock()
		p.warm.active--
		p.warm.mu.Unlock()
		p.Kick()
	}
}

// Kick starts making sandboxes once the runtime has been idle for settleTime. Call it when the network has become
// ready.
func (p *Pool) Kick() {
	p.warm.mu.Lock()
	defer p.warm.mu.Unlock()
	if p.warm.ctx == nil || p.warm.active > 0 || p.warm.filling || len(p.warm.ready) >= p.cfg.Warm {
		return
	}
	if p.warm.timer == nil {
		p.warm.timer = time.AfterFunc(settleTime, p.fill)
		return
	}
	p.warm.timer.Reset(settleTime)
}

func (p *Pool) fill() {
	p.warm.mu.Lock()
	if p.warm.ctx == nil || p.warm.active > 0 || p.warm.filling || len(p.warm.ready) >= p.cfg.Warm || !p.cfg.Network.Ready() {
		p.warm.mu.Unlock()
		return
	}
	p.warm.filling = true
	ctx, dropped := p.warm.ctx, p.warm.dropped
	p.warm.wg.Add(1)
	p.warm.mu.Unlock()
	defer p.warm.wg.Done()

	s, err := p.make(ctx, Ordinary)
	p.warm.mu.Lock()
	p.warm.filling = false
	stale := dropped != p.warm.dropped
	if err == nil && !stale {
		p.warm.ready = append(p.warm.ready, s)
	}
	p.warm.mu.Unlock()
	if err != nil {
		// The next pod fails in the same way and reports it; this is for when there is none.
		p.cfg.Log.Warn("no sandbox could be made ahead", "err", err)
		return
	}
	if stale {
		p.remove(s)
	}
	p.Kick()
}

// take takes the oldest; nil if there is none.
func (p *Pool) take() *Sandbox {
	p.warm.mu.Lock()
	defer p.warm.mu.Unlock()
	if len(p.warm.ready) == 0 {
		return nil
	}
	s := p.warm.ready[0]
	p.warm.ready = p.warm.ready[1:]
	return s
}

// Drop removes the sandboxes made in advance. Call it when the network's range changes.
func (p *Pool) Drop() {
	p.warm.mu.Lock()
	p.warm.dropped++
	p.warm.mu.Unlock()
	for s := p.take(); s != nil; s = p.take() {
		p.remove(s)
	}
}

func (p *Pool) remove(s *Sandbox) {
	if err := p.Remove(s); err != nil {
		p.cfg.Log.Warn("a sandbox made ahead could not be removed", "err", err)
	}
}

// Waiting is how many sandboxes are ready for the next pods.
func (p *Pool) Waiting() int {
	p.warm.mu.Lock()
	defer p.warm.mu.Unlock()
	return len(p.warm.ready)
}
