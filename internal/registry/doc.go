// Package registry is what the API means: one flow of create, update, patch, delete, list and watch
// for all kinds. What is a kind's own is its strategy, a row of package strategy.
//
//	request -> authorisation -> dialect -> decode -> defaults -> validation -> admission -> guarded write -> store
//	store -> one watch -> cache (each object decoded once) -> get, list, watch
//
// It promises: an acknowledged write is on disk and in every later read; a write with a stale
// resourceVersion is refused (409) and changes nothing; every mistake of a manifest is named at once
// with its path (422); what only one object may have is given once (Strategy.Exclusive). Objects it hands out are
// shared: nobody may change them. What lists and watches promise is in package storage.
//
// Who may do what has one door: a Request goes through Authorize before anything is read, so that a refusal
// tells no names, and through the steps of admission once its object is known.
//
// A kind that is not compiled in comes by AddKind; everything follows the table of Kinds.
//
// Callers are apiserver and client/local. All its state is the store's; the cache is read anew at
// start.
//
// Its files:
//
//	registry.go     the Registry, Strategy, the kinds it serves
//	request.go      who wants what; reviews.go answers who asks about rights and tokens
//	admission.go    what a write has to pass beside its own validation
//	create.go update.go delete.go patch.go applypatch.go    the flow of each write; packages patch and apply change documents
//	write.go        the transaction they end in, and what it relies on
//	binding.go evict.go scale.go token.go                   subresources that are more than a part of an object
//	read.go view.go get, list, watch, and the view in which a client sees a kind
//	ensure.go       the objects that every cluster has
//
// Its rooms: authorization is who may do what, decode the way from a client's bytes to an object, patch and apply change
// documents, storage is the objects in the store and in memory, serviceaccount the tokens, strategy what is each
// kind's own.
package registry
