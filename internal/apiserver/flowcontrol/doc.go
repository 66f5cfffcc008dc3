// Package flowcontrol keeps clients from using up the daemon's memory, however many there are and however fast they send
// requests. How slowly they may read is the business of package streaming.
//
// It promises: work under way is bounded in total and for each user, and masters and nodes have a share of their own
// (Limiter); a request that finds no room within a moment is refused with the time to retry (429).
//
// Callers are apiserver and the packages that serve its requests. It knows no kind and no object. Its state is lost
// with the daemon.
package flowcontrol
