// Package registry implements the meaning of the API: one flow of create, update, patch, delete, list and watch for
// all kinds. What is specific to a kind is its strategy, a row of package strategy.
//
//	request -> authorisation -> dialect -> decode -> defaults -> validation -> admission -> guarded write -> store
//	store -> one watch -> cache (each object decoded once) -> get, list, watch
//
// It promises: an acknowledged write is on disk and in every later read; a write with a stale resourceVersion is
// refused (409) and changes nothing; every mistake of a manifest is named at once with its path (422); a value that
// only one object may have is given once (Strategy.Exclusive). Objects it hands out are shared: nobody may change
// them. Package storage documents the promises of lists and watches.
//
// Access control has one place: a Request goes through Authorize before anything is read, so that a refusal reveals
// no names, and through the steps of admission once its object is known.
//
// AddKind adds a kind that is not compiled in; everything else follows the table of Kinds.
//
// Callers are apiserver and client/local. All its state is in the store; the cache is read anew at start.
//
// Its files:
//
//	registry.go     the Registry, Strategy, the kinds it serves
//	request.go      a request and its user; reviews.go answers reviews of rights and tokens
//	admission.go    what a write has to pass besides its own validation
//	create.go update.go delete.go patch.go applypatch.go    the flow of each write; packages patch and apply change documents
//	write.go        the transaction they end in, and what it relies on
//	binding.go evict.go scale.go token.go                   subresources that are more than a part of an object
//	read.go view.go get, list, watch, and the view in which a client sees a kind
//	jointoken.go    who shows a join token
//	ensure.go       the objects that every cluster has
//
// Its packages: authorization decides who may do what, decode turns a client's bytes into an object, patch and apply
// change documents, storage has the objects in the store and in memory, serviceaccount the tokens, strategy what is
// specific to each kind.
package registry
