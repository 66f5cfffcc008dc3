package backends

import (
	"sync/atomic"
	"time"
)

// How long an endpoint is skipped after its first failure, and at most; each further one doubles it.
const (
	firstSkip = time.Second
	longest   = 30 * time.Second
)

// Endpoint is an address and port that requests go to.
type Endpoint struct {
	// Address is host:port.
	Address string
	// Kept is for whoever connects to it: connections that wait for the next request, for example.
	Kept any

	failures atomic.Int32
	until    atomic.Int64 // skipped until then, in nanoseconds since start
}

var start = time.Now()

// now is the time that endpoints are skipped by: clocks that are set do not matter.
func now() int64 { return int64(time.Since(start)) }

// Failed says that the endpoint refused, or broke before it answered anything.
func (e *Endpoint) Failed() {
	n := min(e.failures.Add(1), 6)
	e.until.Store(now() + int64(min(firstSkip<<(n-1), longest)))
}

// Worked says that it answered.
func (e *Endpoint) Worked() {
	if e.failures.Load() != 0 {
		e.failures.Store(0)
		e.until.Store(0)
	}
}

// usable says whether a request may go there. After a failure one request at a time tries whether it is back.
func (e *Endpoint) usable() bool {
	until := e.until.Load()
	if until == 0 {
		return true
	}
	t := now()
	return t >= until && e.until.CompareAndSwap(until, t+int64(firstSkip))
}
