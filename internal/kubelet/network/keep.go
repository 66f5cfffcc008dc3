package network

import (
	"context"
	"slices"
	"sync"
	"time"

	"minik8s/internal/nft"
)

const (
	// settle is how long changes are let come in before the rules are compared: whoever restarts a firewall
	// makes many in a row.
	settle = 50 * time.Millisecond
	// longestGap is between two repairs at most, if somebody keeps undoing them: the gap starts with settle and
	// doubles with each repair, until none was needed for a while.
	longestGap = 400 * time.Millisecond
	// calm is for how long none must have been needed.
	calm = 10 * time.Second
	// again is after how long what the kernel has refused again and again is tried once more.
	again = 5 * time.Second
	// share is how many times as long as a comparison took the next one waits: who changes other rules without end
	// costs no more than that part of a core.
	share = 10
)

// Keep compares the rules, and what else the pods' network needs of the host, with what they should be whenever
// somebody has changed any, and repairs them, until ctx ends. A setting that is changed back (ip_forward) tells nobody;
// it is looked at with the rest.
func (n *Network) Keep(ctx context.Context) {
	n.endFlowsSoon() // of pods that have gone while nobody looked
	changed := make(chan struct{}, 1)
	poke := func() {
		select {
		case changed <- struct{}{}:
		default:
		}
	}
	var watching sync.WaitGroup
	defer watching.Wait()
	for _, watch := range []func(ctx context.Context, started, changed func()) error{nft.Watch, n.watchShared} {
		watching.Go(func() {
			for ctx.Err() == nil {
				// What was changed before the events began is seen by comparing once they have.
				if err := watch(ctx, poke, poke); err != nil {
					n.cfg.Log.Warn("changes of the host's network are not seen, trying again", "error", err)
				}
				wait(ctx, again)
			}
		})
	}
	gap, patience := settle, settle
	var last, next time.Time
	told := ""
	for {
		select {
		case <-changed:
		case <-ctx.Done():
			return
		}
		if since := time.Since(last); since > calm {
			gap = settle
		} else {
			wait(ctx, gap-settle-since)
		}
		wait(ctx, max(settle, time.Until(next)))
		select { // what has come meanwhile is compared with the rest
		case <-changed:
		default:
		}
		began := time.Now()
		repaired, err := n.Repair()
		next = time.Now().Add(min(share*time.Since(began), longestGap))
		if repaired {
			last, gap = time.Now(), min(2*gap, longestGap)
		}
		if err == nil {
			told, patience = "", settle
			continue
		}
		if err.Error() != told {
			n.cfg.Log.Warn("the pods' rules could not be compared or repaired, trying again", "error", err)
			told = err.Error()
		}
		wait(ctx, patience)
		patience = min(2*patience, again)
		poke()
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

// Repair puts right what differs from what should be, and says whether anything did.
func (n *Network) Repair() (repaired bool, err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if !n.ready {
		return false, nil
	}
	whole := true
	if n.held.IsValid() { // Setup has put it there
		if whole, err = n.sharedWhole(n.held); err != nil {
			return false, err
		}
	}
	if !whole {
		if err := n.putShared(n.held); err != nil {
			return false, err
		}
		n.cfg.Log.Info("what the pods' network needs of the host had been taken away and is there again")
	}
	found, err := n.findAgain()
	if err != nil {
		return false, err
	}
	want := n.desired()
	same, err := n.nf.Same(want)
	if err != nil {
		return false, err
	}
	if !same {
		if err := n.nf.Apply(want); err != nil {
			return false, err
		}
		n.cfg.Log.Info("the pods' rules had been changed by somebody else and are whole again")
	}
	opened, err := n.lookAround()
	return !whole || found || !same || opened, err
}

// lookAround opens the filters of others, notes what stands in the way, and says whether it changed any.
func (n *Network) lookAround() (changed bool, err error) {
	changed, trouble, err := n.openFirewalls()
	if err != nil {
		return changed, err
	}
	if !slices.Equal(trouble, n.trouble) {
		for _, t := range trouble {
			n.cfg.Log.Warn("pods' traffic is stopped by the host's packet filter", "by", t)
		}
		n.trouble = trouble
	}
	return changed, nil
}

// Trouble is what of the host's packet filter stops pods' traffic and could not be opened; normally nothing.
// While there is any, or the older iptables is in use, asking looks again: its changes are told by nobody, and
// neither is the end of a table with an owner.
func (n *Network) Trouble() []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.ready && (len(n.trouble) > 0 || n.legacyInUse()) {
		if _, err := n.lookAround(); err != nil {
			n.cfg.Log.Warn("the host's packet filter could not be read", "error", err)
		}
	}
	return slices.Clone(n.trouble)
}
