// Package defaults fills in what a manifest leaves out, as Kubernetes does.
//
// It promises one function per kind that has defaults. Each is idempotent (applying it twice is the same as once),
// changes only empty fields, and never fails or panics on any object. ConfigMap, Event, Lease and ServiceAccount have
// no defaults in Kubernetes, so they have no function here.
//
// Package registry calls it for every object that it creates or replaces. Workloads call PodSpec for their templates.
// It imports only the wire types and package api, holds no state and does no I/O.
package defaults
