// Package registry implements the meaning of the API: one flow of create, update, patch, delete, list and watch for
// all kinds. What is specific to a kind is its strategy, a row of package strategy.
//
//	request -> authorisation -> dialect -> decode -> defaults -> validation -> admission -> guarded write -> store
//	store -> one watch -> cache (each object decoded once) -> get, list, watch
//
// It promises: an acknowledged write is on disk and in every later read; a write with a stale resourceVersion is
// refused (409) and changes nothing; every mistake of a manifest is named at once with its path (422); a value that
// only one object may have is given once (Strategy.Exclusive); what must not be read is stored nowhere but in the object
// that keeps it (Strategy.Split); a write under a fence that has fallen is refused and
// changes nothing (Fence). Objects it hands out are shared: nobody may change
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
//	request.go      a request and its user
//	admission.go    what a write has to pass besides its own validation
//	create.go update.go delete.go patch.go applypatch.go    the flow of each write; packages patch and apply change documents
//	write.go        the transaction they end in, and what it relies on
//	turns.go        writes of which only one at a time can succeed
//	split.go        what an object must not show, and a second one keeps
//	fence.go        what every write of a leader relies on
//	subresource.go  what a kind can have below its objects, and what the registry offers to it and to answers
//	cached.go       what is in the cache, for the server itself
//	read.go view.go get, list, watch, and the shape in which a client sees an object
//	ensure.go       the objects that every cluster has
//
// Its packages: authorization decides who may do what, decode turns a client's bytes into an object, patch and apply
// change documents, storage has the objects in the store and in memory, serviceaccount the tokens, strategy what is
// specific to each kind, with subresource and review: the actions and forms below objects, the answers to questions.
// The registry itself knows one kind, Namespaces, in which others lie.
package registry
