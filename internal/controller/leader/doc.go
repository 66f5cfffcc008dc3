// Package leader lets one of several masters run a controller: the one that holds a Lease.
//
// It promises: at most one holder at a time, if clocks run at the same speed (they need not show the same time: a
// Lease counts as held for Duration from when the watcher saw it renewed, as in client-go's leaderelection); a holder
// that cannot renew stops before another may start; a holder that ends releases the Lease, and one that was killed
// and starts again under the same identity takes it at once. A free Lease is taken at once, so a single master loses
// no time. Holding costs one write per RenewEvery.
//
// roles wraps controllers in it. It reads and writes one Lease, which survives a kill -9, and with it who led.
package leader
