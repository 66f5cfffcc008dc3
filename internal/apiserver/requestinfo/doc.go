// Package requestinfo reads what a request below a group and version of the API is about, for kinds that are stored and
// for groups that are answered otherwise: Kubernetes' RequestInfo. So all of them are authorised by the same reading of
// a path.
//
// It promises: a segment is unescaped once, after the path was split, so that an escaped slash stays within a name; a
// path with an empty segment is no path. handlers and aggregator call it. It has no state.
package requestinfo
