// Package strategy holds what is specific to each kind in the shared flow: its defaults, its validation, what an
// update may change, what selectors can use, and what admission refuses. Package registry has the flow and documents
// in registry.Strategy what a row can hold. The name is Kubernetes' (pkg/registry/core/pod/strategy.go and others).
//
// What a row names of packages subresource and review is done by these; the rest is here.
//
// It promises: a row decides from the objects that it is given and from other objects in the cache; it writes nothing
// and waits for nothing. Only an action changes objects, through registry.Objects.
//
// Roles hands All to registry.New; tests of the registry do so too. To add a kind, add its row here.
package strategy
