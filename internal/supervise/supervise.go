package supervise

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"
)

// Policy is what happens when a part ends before it was told to.
type Policy int

const (
	// Must ends the group with the part's error.
	Must Policy = iota
	// Keep starts the part again, after a back-off that doubles from 100 ms to 30 s and falls
	// back once the part has run for a minute.
	Keep
)

// Part is one thing that runs. Run returns when ctx ends; it calls ready once it can be relied on.
type Part struct {
	Name   string
	Policy Policy
	Run    func(ctx context.Context, ready func()) error
	// After names the parts that have to be ready before this one starts; it is stopped before they are. A part that
	// names none starts at once.
	After []string
	// StopTimeout bounds how long it may take to stop; 0 means 2 s.
	StopTimeout time.Duration
}

// State is how a part stands, for /readyz?verbose and /metrics.
type State struct {
	Name     string
	Ready    bool
	Restarts int
	LastErr  string
}

// Group is a list of parts that live and die together.
type Group struct {
	log   *slog.Logger
	mu    sync.Mutex
	parts []*running
	ready bool
	// AtOnce has all parts told to stop at the same time, not each when the one after it has ended. Set it
	// before Run.
	AtOnce bool
}

type running struct {
	Part
	state   State
	after   []*running
	readyCh chan struct{} // closed at the first ready
	cancel  context.CancelFunc
	done    chan struct{}
}

// New makes a group; it starts nothing.
func New(log *slog.Logger, parts ...Part) *Group {
	g := &Group{log: log}
	for _, p := range parts {
		if p.StopTimeout == 0 {
			p.StopTimeout = 2 * time.Second
		}
		g.parts = append(g.parts, &running{Part: p, state: State{Name: p.Name},
			readyCh: make(chan struct{}), done: make(chan struct{})})
	}
	return g
}

// Run starts every part once those it comes after are ready, and returns when all have stopped: nil if ctx ended, else
// the error of the Must part that failed. started is called once all are ready; it may be nil. Parts that come after one
// that there is not, or after each other in a circle, are an error, and nothing is started.
func (g *Group) Run(ctx context.Context, started func()) error {
	order, err := g.order()
	if err != nil {
		return err
	}
	fatal := make(chan error, len(order))
	for _, r := range order {
		pctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
		r.cancel = cancel
		go g.keep(pctx, r, fatal)
	}
start:
	for _, r := range order {
		select {
		case <-r.readyCh:
		case err = <-fatal:
			break start
		case <-ctx.Done():
			break start
		}
	}
	if err == nil && ctx.Err() == nil {
		g.mu.Lock()
		g.ready = true
		g.mu.Unlock()
		if started != nil {
			started()
		}
		select {
		case err = <-fatal:
		case <-ctx.Done():
		}
	}
	g.mu.Lock()
	g.ready = false
	g.mu.Unlock()
	return errors.Join(err, g.stop(order))
}

// order is the parts, each behind those it comes after, else as they were given.
func (g *Group) order() ([]*running, error) {
	byName := map[string]*running{}
	for _, r := range g.parts {
		byName[r.Name] = r
	}
	for _, r := range g.parts {
		r.after = nil
		for _, name := range r.After {
			before := byName[name]
			if before == nil {
				return nil, fmt.Errorf("part %s comes after %q, which is no part of the group", r.Name, name)
			}
			r.after = append(r.after, before)
		}
	}
	var order []*running
	for len(order) < len(g.parts) {
		i := slices.IndexFunc(g.parts, func(r *running) bool {
			return !slices.Contains(order, r) && !slices.ContainsFunc(r.after, func(b *running) bool { return !slices.Contains(order, b) })
		})
		if i < 0 {
			return nil, errors.New("parts come after each other in a circle: " + circle(g.parts, order))
		}
		order = append(order, g.parts[i])
	}
	return order, nil
}

// circle names the parts that have no place in the order.
func circle(parts, order []*running) string {
	var names []string
	for _, r := range parts {
		if !slices.Contains(order, r) {
			names = append(names, r.Name)
		}
	}
	return strings.Join(names, ", ")
}

// stop ends the parts in reverse and reports those that did not end in time.
func (g *Group) stop(parts []*running) error {
	var hung []string
	for _, r := range parts {
		if g.AtOnce {
			r.cancel()
		}
	}
	for i := len(parts) - 1; i >= 0; i-- {
		r := parts[i]
		r.cancel()
		t := time.NewTimer(r.StopTimeout)
		select {
		case <-r.done:
		case <-t.C:
			hung = append(hung, r.Name)
		}
		t.Stop()
	}
	if len(hung) > 0 {
		return fmt.Errorf("did not stop in time: %s", strings.Join(hung, ", "))
	}
	return nil
}

const (
	minBackoff = 100 * time.Millisecond
	maxBackoff = 30 * time.Second
	// goodRun is how long a part must run for its back-off to start over.
	goodRun = time.Minute
)

func (g *Group) keep(ctx context.Context, r *running, fatal chan<- error) {
	defer close(r.done)
	for _, before := range r.after {
		select {
		case <-before.readyCh:
		case <-ctx.Done():
			return
		}
	}
	backoff := minBackoff
	for {
		began := time.Now()
		err := g.once(ctx, r)
		if ctx.Err() != nil {
			return
		}
		if err == nil {
			err = errors.New("ended without being told to")
		}
		g.mu.Lock()
		r.state.Ready = false
		r.state.LastErr = err.Error()
		r.state.Restarts++
		g.mu.Unlock()
		if r.Policy == Must {
			fatal <- fmt.Errorf("%s: %w", r.Name, err)
			return
		}
		if time.Since(began) > goodRun {
			backoff = minBackoff
		}
		g.log.Error("part ended, starting it again", "part", r.Name, "error", err, "in", backoff)
		t := time.NewTimer(backoff)
		select {
		case <-t.C:
		case <-ctx.Done():
			t.Stop()
			return
		}
		backoff = min(backoff*2, maxBackoff)
	}
}

// once runs the part one time. What it started goes with it, also when it panics: its context ends.
func (g *Group) once(ctx context.Context, r *running) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	began := time.Now()
	ready := func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		if !r.state.Ready {
			r.state.Ready = true
			r.state.LastErr = ""
			g.log.Debug("part is ready", "part", r.Name, "after", time.Since(began).Round(time.Millisecond/10))
			select {
			case <-r.readyCh:
			default:
				close(r.readyCh)
			}
		}
	}
	err := Safe(func() error { return r.Run(ctx, ready) })
	var p *Panic
	if errors.As(err, &p) {
		g.log.Error("part panicked", "part", r.Name, "panic", p.Value, "stack", p.Stack)
	}
	return err
}

// Ready says whether every part has become ready and none has failed since.
func (g *Group) Ready() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.ready {
		return false
	}
	for _, r := range g.parts {
		if !r.state.Ready {
			return false
		}
	}
	return true
}

// States is how each part stands, in the order of the list.
func (g *Group) States() []State {
	g.mu.Lock()
	defer g.mu.Unlock()
	out := make([]State, len(g.parts))
	for i, r := range g.parts {
		out[i] = r.state
	}
	return out
}
