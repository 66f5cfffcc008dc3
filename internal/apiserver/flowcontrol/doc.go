// Package flowcontrol keeps clients from taking the daemon's memory, however many there are, however fast they ask and
// however slowly they read.
//
// It promises: what is under way is bounded in all and for each user, and masters and nodes have a share of their own
// (Limiter); a request that finds no room within a moment is sent away with when to come again (429); an answer is sent
// in pieces, and a client that does not take a piece in time is cut off (Writer).
//
// Callers are apiserver and what serves its requests. It knows no kind and no object. Nothing of it survives the daemon.
package flowcontrol
