// Package defaults fills in what a manifest leaves out, as Kubernetes does.
//
// It promises: a func per kind that has defaults, each idempotent (applied twice it does what it
// does once), each changing only what is empty, none failing or panicking on any object. A ConfigMap,
// an Event, a Lease and a ServiceAccount have no defaults in Kubernetes, so they have no func here.
//
// Package registry calls it for every object it creates or replaces; workloads call PodSpec for their
// templates. It imports only the wire types, holds no state and does no I/O.
package defaults
