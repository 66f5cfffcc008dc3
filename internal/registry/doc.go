// Package registry is what the API means: one flow of create, update, patch, delete, list and watch
// for all kinds, and a table with a strategy per kind for what is the kind's own.
//
//	request -> authorisation -> dialect -> decode -> defaults -> validation -> admission -> guarded write -> store
//	store -> one watch -> cache (each object decoded once) -> get, list, watch
//
// It promises: an acknowledged write is on disk and in every later read; a write with a stale
// resourceVersion is refused (409) and changes nothing; every mistake of a manifest is named at once
// with its path (422); a watch from the revision of a list misses and repeats nothing, or ends with
// 410. Objects it hands out are shared: nobody may change them.
//
// The cache follows the store by a single watch over all kinds, not one per kind, because then "the
// cache is current" is one comparison: its revision against the store's. Reads never go to the store
// but for pages of an older list.
//
// Who may do what has one door: a Request goes through Authorize before anything is read, so that a refusal
// tells no names, and through the steps of admission once its object is known.
//
// Callers are apiserver and client/local. All its state is the store's; the cache is read anew at
// start, and watches from before a restart end with 410 and list again.
package registry
