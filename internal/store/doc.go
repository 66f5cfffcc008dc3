// Package store keeps bytes under keys, each change at a revision: the one place where state lives.
//
// It promises: a write that returned is on disk (etcd) and every later read sees it; a write may change several keys,
// each with a guard, and a stale one changes nothing; revisions are one increasing sequence over all keys; a watch
// from a revision delivers every change after it, in order, once, or ends with ErrCompacted when that history is
// gone.
//
// Three implementations: etcd (embedded), external (an etcd that others run) and memory (for fast tests; lost with the
// process). storetest is the contract that all pass. Only registry calls it. Everything acknowledged survives a kill -9; a watch does not, and is opened
// again from the last revision seen.
package store
