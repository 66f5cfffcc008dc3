package nft

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"
)

// Kept is what of a Ruleset a Keeper needs.
type Kept interface {
	Edit(table string, e Edit) error
	Sync(t Table) (changed bool, err error)
	WatchTable(ctx context.Context, table string, started, changed func()) error
}

// KeeperConfig is what a Keeper is made from.
type KeeperConfig struct {
	Ruleset Kept // nil: the kernel
	Table   string
	// Wanted is the whole of what the kernel should have. Lock is held when it is called, and has to be held by who calls
	// Write and Forget.
	Wanted func() Table
	Lock   sync.Locker
	What   string // what is kept, for the log: "the rules of Services"
	Log    *slog.Logger
}

// Keeper keeps a table of ours, or a guest's part of one, as its owner wants it: by edits as long as the kernel takes them,
// and by comparing all of it at the start, after an edit that was refused, and when somebody else has changed it.
type Keeper struct {
	cfg     KeeperConfig
	foreign chan struct{} // somebody else has changed the table
	touched atomic.Int64  // when that was, in nanoseconds since start
	start   time.Time

	// With Lock held:
	synced   bool      // the kernel has what is wanted, as far as is known
	compared time.Time // when the last comparison began that found or left it so

	edits, refused atomic.Int64
}

// NewKeeper makes one. Nothing is written before the first Write.
func NewKeeper(cfg KeeperConfig) *Keeper {
	if cfg.Ruleset == nil {
		cfg.Ruleset = NewKernel()
	}
	return &Keeper{cfg: cfg, foreign: make(chan struct{}, 1), start: time.Now()}
}

// Synced reports whether the kernel has what is wanted, as far as is known. Lock is held.
func (k *Keeper) Synced() bool { return k.synced }

// Counts are how many edits were written, and how many of them the kernel did not take.
func (k *Keeper) Counts() (edits, refused int64) { return k.edits.Load(), k.refused.Load() }

// Forget has the next Write compare all of it. Lock is held.
func (k *Keeper) Forget() { k.synced = false }

// Write brings the kernel from what was wanted before to what is wanted now, between which e is the difference. After an
// error it has to be called again, if only with an empty Edit. Lock is held.
func (k *Keeper) Write(e Edit) error {
	if k.synced && !e.Empty() {
		k.edits.Add(1)
		if err := k.cfg.Ruleset.Edit(k.cfg.Table, e); err != nil {
			k.cfg.Log.Warn("the kernel refuses a change of "+k.cfg.What+", comparing all of them", "error", err)
			k.synced = false // it is not known who has changed what
			k.refused.Add(1)
		}
	}
	if k.synced {
		return nil
	}
	k.compared = time.Now()
	if _, err := k.cfg.Ruleset.Sync(k.cfg.Wanted()); err != nil {
		return err
	}
	k.synced = true
	return nil
}

const (
	// settle is how long to wait after another's change before comparing: a restart of a firewall makes many in a row.
	settle = 50 * time.Millisecond
	// longestGap bounds the gap between two repairs while another program keeps undoing them.
	longestGap = 400 * time.Millisecond
	// again bounds the gap between two attempts that the kernel refuses.
	again = 5 * time.Second
)

// Run compares and repairs after others have changed the table, until ctx ends.
func (k *Keeper) Run(ctx context.Context) {
	var watching sync.WaitGroup
	watching.Go(func() { k.watch(ctx) })
	defer watching.Wait()
	gap := settle
	for {
		select {
		case <-k.foreign:
		case <-ctx.Done():
			return
		}
		pause(ctx, gap)
		select { // a change that came meanwhile is covered by the same comparison
		case <-k.foreign:
		default:
		}
		began := time.Now()
		repaired, err := k.repair()
		switch {
		case err != nil:
			k.cfg.Log.Warn(k.cfg.What+" could not be compared or repaired, trying again", "error", err)
			gap = min(2*gap, again)
			k.poke()
		case repaired:
			k.cfg.Log.Info(k.cfg.What + " had been changed by somebody else and are whole again")
			gap = min(2*gap, longestGap)
		default:
			gap = settle
		}
		pause(ctx, min(9*time.Since(began), again)) // while others change it all the time, comparing takes a tenth of a core
	}
}

// watch notices that others have changed the table.
func (k *Keeper) watch(ctx context.Context) {
	changed := func() {
		k.touched.Store(int64(time.Since(k.start)))
		k.poke()
	}
	for ctx.Err() == nil { // what changed in between is found by a comparison at its start
		if err := k.cfg.Ruleset.WatchTable(ctx, k.cfg.Table, changed, changed); err != nil {
			k.cfg.Log.Warn("changes of "+k.cfg.What+" are not seen, trying again", "error", err)
		}
		pause(ctx, again)
	}
}

func (k *Keeper) poke() {
	select {
	case k.foreign <- struct{}{}:
	default:
	}
}

func (k *Keeper) repair() (bool, error) {
	k.cfg.Lock.Lock()
	defer k.cfg.Lock.Unlock()
	if !k.synced || k.compared.Sub(k.start) > time.Duration(k.touched.Load()) { // it is compared with the next change, or was
		return false, nil
	}
	k.compared = time.Now()
	return k.cfg.Ruleset.Sync(k.cfg.Wanted())
}

func pause(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}
