package roles

import (
	"context"
	"log/slog"
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// settle is how long after the start memory is returned: goroutines of the start have ended by then.
const settle = 2 * time.Second

// giveBack returns memory that only the start needed, once: the heap's free pages, and the pages of the program file
// with code that will not run again. Pages that are needed after all come back from the page cache, with one fault
// each.
func giveBack(ctx context.Context, log *slog.Logger) {
	t := time.NewTimer(settle)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
		return
	}
	giveBackNow(log)
}

func giveBackNow(log *slog.Logger) {
	debug.FreeOSMemory()
	if err := dropProgram(); err != nil {
		log.Debug("pages of the program could not be given back", "error", err)
	}
}

// rest finds out when a busy time has ended, from the times of collections. Without work there is one every two minutes,
// which the runtime forces.
type rest struct {
	last time.Time
	busy bool // something was done since memory was given back
}

// quiet is the pause before a collection that only the runtime wants.
const quiet = 110 * time.Second

// begins reports, at a collection, whether a busy time has ended with the one before it.
func (r *rest) begins(now time.Time) bool {
	gap := now.Sub(r.last)
	r.last = now
	if gap < quiet {
		r.busy = true
		return false
	}
	was := r.busy
	r.busy = false
	return was
}

// ignore leaves a collection out that only gave back memory.
func (r *rest) ignore(now time.Time) { r.last, r.busy = now, false }

// Above tuneAbove bytes of live heap the garbage collector runs with GOGC=tunedPercent instead of 100: a master with
// many objects then uses 1.5 times their size, not twice. Below it there is little garbage, and collecting less often
// is worth more: creates are a tenth faster.
const (
	tuneAbove    = 96 << 20
	tunedPercent = 50
)

// tuneCollector sets GOGC after each collection, by the size of the live heap, and calls rested when a busy time has
// ended, to give memory back: the runtime keeps as much as it needed then. It needs no timer: it leaves an unreachable object, whose finalizer
// runs after the next collection and calls it again.
func tuneCollector(rested func()) {
	type cycle struct{ _ [16]byte }
	percent := 100
	pause := rest{last: time.Now()}
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
		if pause.begins(time.Now()) {
			rested()
			pause.ignore(time.Now())
		}
		runtime.SetFinalizer(&cycle{}, set)
	}
	runtime.SetFinalizer(&cycle{}, set)
}

// dropProgram drops the clean pages of this program's file from the process's memory.
func dropProgram() error {
	exe, err := os.Readlink("/proc/self/exe")
	if err != nil {
		return err
	}
	smaps, err := os.ReadFile("/proc/self/smaps")
	if err != nil {
		return err
	}
	for _, r := range cleanRanges(string(smaps), exe) {
		if _, _, errno := unix.Syscall(unix.SYS_MADVISE, r.start, r.end-r.start, unix.MADV_DONTNEED); errno != 0 {
			return errno
		}
	}
	return nil
}

// addresses is a range of memory.
type addresses struct{ start, end uintptr }

// cleanRanges are the mappings of a file without any written page: they are not writable, and no page in them is
// anonymous. The second condition matters: a loader writes relocations before it makes their mapping read-only, and
// dropping those pages would bring back the file's unrelocated bytes.
func cleanRanges(smaps, file string) []addresses {
	var out []addresses
	var r addresses
	candidate := false
	for line := range strings.Lines(smaps) {
		f := strings.Fields(line)
		switch {
		case len(f) >= 2 && strings.Contains(f[0], "-") && len(f[1]) == 4:
			candidate = len(f) >= 6 && f[5] == file && f[1][1] != 'w'
			from, to, _ := strings.Cut(f[0], "-")
			start, err1 := strconv.ParseUint(from, 16, 64)
			end, err2 := strconv.ParseUint(to, 16, 64)
			candidate = candidate && err1 == nil && err2 == nil
			r = addresses{uintptr(start), uintptr(end)}
		case candidate && len(f) == 3 && f[0] == "Anonymous:":
			if f[1] == "0" {
				out = append(out, r)
			}
			candidate = false
		}
	}
	return out
}
