// Package strategy is what is each kind's own in the flow that all share: its defaults, its validation, what an
// update may change, what a selector can ask for, and what admission refuses. Package registry has the flow and says
// in registry.Strategy what a row can hold; the name is Kubernetes' (pkg/registry/core/pod/strategy.go and others).
//
// It promises: a row decides by the objects that it is given, and by those beside them that the cache has; it writes
// nothing and waits for nothing.
//
// Roles hands All to registry.New; tests of the registry do so too. To add a kind, add its row here.
package strategy
