// Package aggregation is what a part of the daemon and the API server agree on, for an API group whose objects are not
// stored but answered when somebody asks: metrics are such objects.
//
// A part makes a Group and does not know who asks. The API server has authenticated and authorised each Request before
// the part sees it, counts it among what is under way, and tells clients of the group in discovery. An APIService that
// names a Service leads the group there instead, until it is deleted.
//
// The package has no state, and nothing of it survives the daemon.
package aggregation
