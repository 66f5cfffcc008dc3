package main

import (
	"fmt"
	"net/http"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"minik8s/internal/exposition"
)

// mostWork is the most that a request may ask for.
const mostWork = time.Second

// work is what requests have asked for.
type work struct {
	requests, nanoseconds atomic.Int64
}

// do does a request's work, a duration in Go's notation; "" is none.
func (w *work) do(asked string) error {
	var d time.Duration
	if asked != "" {
		var err error
		if d, err = time.ParseDuration(asked); err != nil || d < 0 || d > mostWork {
			return fmt.Errorf("work=%q: expected a duration from 0s to %s, as 10ms", asked, mostWork)
		}
	}
	w.requests.Add(1)
	w.nanoseconds.Add(int64(burn(d, time.Time{})))
	return nil
}

// burn uses so much CPU time of one core, however long that takes beside others, but not after end, if there is one. It
// returns how much it was.
func burn(d time.Duration, end time.Time) time.Duration {
	if d <= 0 {
		return 0
	}
	runtime.LockOSThread() // whose time is measured
	defer runtime.UnlockOSThread()
	began := threadTime()
	for {
		used := threadTime() - began
		if used >= d || !end.IsZero() && time.Now().After(end) {
			return used
		}
	}
}

// threadTime is the CPU time that this thread has used.
func threadTime() time.Duration {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &t); err != nil {
		panic(err) // every Linux has this clock
	}
	return time.Duration(t.Nano())
}

// load uses a share of the CPU, in percent of one core.
type load struct {
	mu      sync.Mutex
	changed *sync.Cond
	percent int
}

func newLoad() *load {
	l := &load{}
	l.changed = sync.NewCond(&l.mu)
	return l
}

// add changes the share, and returns what it is now.
func (l *load) add(n int) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.percent = min(max(l.percent+n, 0), 100*runtime.NumCPU())
	l.changed.Broadcast()
	return l.percent
}

// some waits until there is any and returns how much.
func (l *load) some() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	for l.percent == 0 {
		l.changed.Wait()
	}
	return l.percent
}

// run is one core's part of it: busy for its share of each tenth of a second.
func (l *load) run() {
	const period = 100 * time.Millisecond
	for {
		share := period * time.Duration(l.some()) / time.Duration(100*runtime.NumCPU())
		end := time.Now().Add(period)
		burn(share, end)
		time.Sleep(time.Until(end))
	}
}

func writeMetrics(w http.ResponseWriter, done *work, l *load) {
	w.Header().Set("Content-Type", exposition.ContentType)
	page := exposition.To(w)
	page.Family("http_requests_total", exposition.Counter, "Requests for the name.")
	page.Sample("", float64(done.requests.Load()), time.Time{})
	page.Family("hello_work_seconds_total", exposition.Counter, "CPU time that they asked for and got.")
	page.Sample("", time.Duration(done.nanoseconds.Load()).Seconds(), time.Time{})
	page.Family("hello_load_cores", exposition.Gauge, "Load set by /higher and /lower.")
	page.Sample("", float64(l.add(0))/100, time.Time{})
	page.Flush() //nolint:errcheck // who asked has gone
}
