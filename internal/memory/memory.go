package memory

import (
	"context"
	"log/slog"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync"
	"time"
)

// settle is how long after the start memory is returned: goroutines of the start have ended by then.
const settle = 2 * time.Second

// GiveBackLater returns memory that only the start needed: the heap's free pages, and the pages of the program file
// with code that will not run again. Pages that are needed after all come back from the page cache, with one fault
// each.
func GiveBackLater(ctx context.Context, log *slog.Logger) {
	t := time.NewTimer(settle)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
		return
	}
	GiveBack(log)
}

// GiveBack returns the heap's free pages, and clean pages of files, now.
func GiveBack(log *slog.Logger) {
	debug.FreeOSMemory()
	if err := dropFiles(); err != nil {
		log.Debug("pages of files could not be given back", "error", err)
	}
}

// rest finds out when a busy time has ended, from the times of collections. Without work there is one every two minutes,
// which the runtime forces.
type rest struct {
	last  time.Time
	busy  bool // something was done since memory was given back
	burst int  // collections one soon after the other
	own   bool // the next collection is that of giving memory back
}

// started is the state at the start of the daemon, which is a burst itself: two seconds after it is too early while images are imported,
// so memory is given back once more when its last collection is pause ago.
func started(now time.Time) rest { return rest{last: now, busy: true, burst: burstLength} }

const (
	// quiet is the pause before a collection that only the runtime wants.
	quiet = 110 * time.Second
	// pause is how long after a burst of collections without another one memory is given back. A burst has at least
	// burstLength: giving back costs a collection and a thousand faults, which less work is not worth.
	pause       = 8 * time.Second
	burstLength = 4
)

// collected notes a collection, and reports whether a busy time ended with the one before it, or else whether one ends a pause
// from now on, should there be no other until then.
func (r *rest) collected(now time.Time) (over, soon bool) {
	if r.own {
		r.own = false
		return false, false
	}
	gap := now.Sub(r.last)
	r.last = now
	switch {
	case gap >= quiet:
		over, r.busy, r.burst = r.busy, false, 0
		return over, false
	case gap >= pause:
		r.burst = 0
	}
	r.busy = true
	r.burst++
	return false, r.burst >= burstLength
}

// gaveBack notes that memory was given back; own: its collection is still to be noted.
func (r *rest) gaveBack(now time.Time, own bool) {
	*r = rest{last: now, own: own}
}

// Above tuneAbove bytes of live heap the garbage collector runs with GOGC=tunedPercent instead of 100: a master with
// many objects then uses 1.5 times their size, not twice. Below it there is little garbage, and collecting less often
// is worth more: creates are a tenth faster.
const (
	tuneAbove    = 96 << 20
	tunedPercent = 50
)

// TuneCollector sets GOGC after each collection, by the size of the live heap, and calls rested when a busy time has
// ended, to give memory back: the runtime keeps as much as it needed then. Nothing ticks for that: it leaves an unreachable
// object, whose finalizer runs after the next collection and calls it again; and only a burst of collections starts a timer.
func TuneCollector(rested func()) {
	type cycle struct{ _ [16]byte }
	percent := 100
	var mu sync.Mutex
	pauses := started(time.Now())
	giveBack := func(own bool) {
		pauses.own = own
		rested()
		pauses.gaveBack(time.Now(), pauses.own)
	}
	ends := time.AfterFunc(pause, func() {
		mu.Lock()
		defer mu.Unlock()
		if pauses.burst >= burstLength {
			giveBack(true)
		}
	})
	live := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	var set func(*cycle)
	set = func(*cycle) {
		want := 100
		if metrics.Read(live); live[0].Value.Kind() == metrics.KindUint64 && live[0].Value.Uint64() > tuneAbove {
			want = tunedPercent
		}
		if want != percent {
			percent = want
			debug.SetGCPercent(want)
		}
		mu.Lock()
		over, soon := pauses.collected(time.Now())
		if over {
			giveBack(false) // its collection is not seen: there is no object now
		}
		if soon {
			ends.Reset(pause)
		}
		mu.Unlock()
		runtime.SetFinalizer(&cycle{}, set)
	}
	runtime.SetFinalizer(&cycle{}, set)
}
