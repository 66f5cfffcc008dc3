package network

import (
	"context"
	"errors"
	"sync"
	"time"

	"minik8s/internal/network/host"
	"minik8s/internal/network/hostfilter"
	"minik8s/internal/nft"
)

const (
	// settle is how long to wait after a change before comparing: a restart of a firewall makes many in a row.
	settle = 50 * time.Millisecond
	// longestGap bounds the gap between two repairs while another program keeps undoing them. The gap starts at
	// settle, doubles with each repair, and is reset once no repair was needed for the time calm.
	longestGap = 400 * time.Millisecond
	calm       = 10 * time.Second
	// again bounds the gap between two attempts that the kernel refuses.
	again = 5 * time.Second
	// share bounds the cost of comparing while another program changes rules all the time: the next comparison waits
	// this many times as long as the last one took, so comparing takes at most a tenth of a core.
	share = 10
)

// Keep repairs the rules, and the rest of the host's network that pods need, whenever another program has changed
// them, until ctx ends.
func (n *Network) Keep(ctx context.Context) {
	n.endFlowsSoon() // for pods that were removed while no daemon ran
	var watching sync.WaitGroup
	defer watching.Wait()
	for _, watch := range []func(ctx context.Context, started, changed func()) error{n.watchRules, n.watchShared, n.watchLinks} {
		watching.Go(func() { n.keepWatching(ctx, watch, n.poke) })
	}
	p := pace{gap: settle, patience: settle}
	reported := "" // the error that was logged last
	for {
		select {
		case <-n.changed:
		case <-ctx.Done():
			return
		}
		wait(ctx, p.before(time.Now()))
		select { // a change that came meanwhile is covered by the same comparison
		case <-n.changed:
		default:
		}
		began := time.Now()
		repaired, err := n.Repair()
		p.compared(began, time.Now(), repaired)
		if err == nil {
			reported, p.patience = "", settle
			continue
		}
		if err.Error() != reported {
			n.cfg.Log.Warn("the pods' rules could not be compared or repaired, trying again", "error", err)
			reported = err.Error()
		}
		wait(ctx, p.patience)
		p.patience = min(2*p.patience, again)
		n.poke()
	}
}

// watchRules watches all packet filters but those of another part.
func (n *Network) watchRules(ctx context.Context, started, changed func()) error {
	if n.cfg.Unwatched == "" {
		return nft.Watch(ctx, started, changed)
	}
	return nft.WatchBut(ctx, n.cfg.Unwatched, started, changed)
}

// watchLinks watches the host's links, and those that may lead to peers.
func (n *Network) watchLinks(ctx context.Context, started, changed func()) error {
	return host.WatchLinks(ctx, n.overlay.Concerns, started, changed)
}

// WatchAddresses calls changed when this host's addresses, or the routes that choose among them, may have changed, until ctx ends or
// nothing can be heard any more. started is called once nothing is missed. It needs no Network, and no rights.
func WatchAddresses(ctx context.Context, started, changed func()) error {
	return host.WatchAddresses(ctx, started, changed)
}

// poke makes Keep compare.
func (n *Network) poke() {
	select {
	case n.changed <- struct{}{}:
	default:
	}
}

// keepWatching subscribes again whenever the subscription ends. Changes in between are found by a comparison at its
// start: poke is also watch's started.
func (n *Network) keepWatching(ctx context.Context, watch func(ctx context.Context, started, changed func()) error, poke func()) {
	for ctx.Err() == nil {
		if err := watch(ctx, poke, poke); err != nil {
			n.cfg.Log.Warn("changes of the host's network are not seen, trying again", "error", err)
		}
		wait(ctx, again)
	}
}

// pace decides when to compare and repair.
type pace struct {
	gap      time.Duration // between two repairs
	patience time.Duration // before the next attempt after a failure
	repaired time.Time     // when the last repair was needed
	next     time.Time     // the next comparison comes no sooner
}

// before is how long to wait before a comparison, when something has changed.
func (p *pace) before(now time.Time) time.Duration {
	since := now.Sub(p.repaired)
	if since > calm {
		p.gap = settle
	}
	return max(settle, p.gap-since, p.next.Sub(now))
}

// compared records a comparison.
func (p *pace) compared(began, ended time.Time, repaired bool) {
	p.next = ended.Add(min(share*ended.Sub(began), longestGap))
	if repaired {
		p.repaired, p.gap = ended, min(2*p.gap, longestGap)
	}
}

func wait(ctx context.Context, d time.Duration) {
	if d <= 0 {
		return
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}

// Repair restores what differs from the wanted state, and reports whether anything did.
func (n *Network) Repair() (repaired bool, err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if !n.ready {
		return false, nil
	}
	whole := true
	if n.held.IsValid() { // Setup has added the route
		if whole, err = n.sharedComplete(n.held); err != nil {
			return false, err
		}
	}
	if !whole {
		if err := n.setUpShared(n.held); err != nil {
			return false, err
		}
		n.cfg.Log.Info("what the pods' network needs of the host had been taken away and is there again")
	}
	n.chooseAgain()
	served, err := n.syncServed()
	if err != nil {
		return false, err
	}
	if served {
		n.cfg.Log.Info("addresses that this host answers at had been taken away and are there again")
	}
	if err := n.chooseSource(); err != nil {
		return false, err
	}
	routed, err := n.restoreRoutes()
	if err != nil {
		return false, err
	}
	want := n.desired()
	same, err := n.nf.Same(want)
	if err != nil {
		return false, err
	}
	if !same {
		if err := n.apply(); err != nil {
			return false, err
		}
		n.cfg.Log.Info("the pods' rules had been changed by somebody else and are whole again")
	}
	rejoined, perr := n.overlay.Sync(n.pool.Prefix())
	if rejoined {
		n.cfg.Log.Info("the ways to other nodes' pods are changed to what this host's network is now")
	}
	opened, err := n.filters.Open(n.traffic())
	return !whole || served || routed || !same || rejoined || opened, errors.Join(perr, err)
}

// Trouble returns what in the host's packet filter stops pods' traffic. Not every filter's change is an event: while
// there is such a filter, Trouble checks again.
func (n *Network) Trouble() hostfilter.Trouble {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.ready && n.filters.Unheard() {
		if _, err := n.filters.Open(n.traffic()); err != nil {
			n.cfg.Log.Warn("the host's packet filter could not be read", "error", err)
		}
	}
	return n.filters.Trouble()
}
