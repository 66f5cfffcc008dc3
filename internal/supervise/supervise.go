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

// Policy says what happens when a part ends before it was told to.
type Policy int

const (
	// Must ends the group with the part's error.
	Must Policy = iota
	// Keep starts the part again, after a back-off that doubles from 100 ms to 30 s. The back-off is reset once the
	// part has run for a minute.
	Keep
)

// Part is one thing that runs. Run must return when ctx ends, and call ready when the part can be used.
type Part struct {
	Name   string
	Policy Policy
	Run    func(ctx context.Context, ready func()) error
	// After names the parts that must be ready before this one starts. This part is stopped before they are. A part
	// without After starts at once.
	After []string
	// Await names parts after which this one comes, too, but for which it waits only so long: then it starts without them.
	Await    []string
	Patience time.Duration
	// StopTimeout is the time limit for stopping the part; 0 means 2 s.
	StopTimeout time.Duration
}

// State is the state of a part, for /readyz?verbose and /metrics.
type State struct {
	Name     string
	Ready    bool
	Restarts int
	LastErr  string
}

// Group is a list of parts that start and stop together.
type Group struct {
	log   *slog.Logger
	mu    sync.Mutex
	parts []*running
	ready bool
	// AtOnce tells all parts to stop at the same time, instead of each when those after it have ended. It must be set
	// before Run.
	AtOnce bool
}

type running struct {
	Part
	state   State
	after   []*running    // and await
	readyCh chan struct{} // closed when the part is first ready
	cancel  context.CancelFunc
	done    chan struct{}
}

// New makes a group. It does not start it.
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

// Run starts every part once the parts it comes after are ready, and returns when all have stopped. It returns nil if
// ctx ended, or else the error of the Must part that failed. started, if not nil, is called once all are ready. Run
// fails, and starts nothing, if After names an unknown part or the parts come after each other in a circle.
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

// order returns the parts so that each follows those it comes after, otherwise in the given order.
func (g *Group) order() ([]*running, error) {
	byName := map[string]*running{}
	for _, r := range g.parts {
		byName[r.Name] = r
	}
	for _, r := range g.parts {
		r.after = nil
		for _, name := range slices.Concat(r.After, r.Await) {
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

// circle names the parts that are in a circle and cannot be ordered.
func circle(parts, order []*running) string {
	var names []string
	for _, r := range parts {
		if !slices.Contains(order, r) {
			names = append(names, r.Name)
		}
	}
	return strings.Join(names, ", ")
}

// stop stops the parts in reverse order and returns an error that names those that did not end in time.
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
	// goodRun is how long a part must run until its back-off is reset.
	goodRun = time.Minute
)

func (g *Group) keep(ctx context.Context, r *running, fatal chan<- error) {
	defer close(r.done)
	if !g.await(ctx, r) {
		return
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

// await waits until a part may start; false: ctx has ended.
func (g *Group) await(ctx context.Context, r *running) bool {
	var enough <-chan time.Time
	for i, before := range r.after {
		if i == len(r.After) {
			t := time.NewTimer(r.Patience)
			defer t.Stop()
			enough = t.C
		}
		select {
		case <-before.readyCh:
		case <-enough:
			g.log.Warn("part starts without what it comes after", "part", r.Name, "missing", before.Name, "after", r.Patience)
			return true
		case <-ctx.Done():
			return false
		}
	}
	return true
}

// once runs the part one time. Its context ends with the run, so what it started ends too, even after a panic.
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

// Ready reports whether every part has become ready and none has failed since.
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

// States returns the state of each part, in the order of the list.
func (g *Group) States() []State {
	g.mu.Lock()
	defer g.mu.Unlock()
	out := make([]State, len(g.parts))
	for i, r := range g.parts {
		out[i] = r.state
	}
	return out
}
