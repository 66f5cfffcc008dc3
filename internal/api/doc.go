// Package api names every kind that minik8s serves.
//
// It promises one table with a row per kind: its place on the wire (group, version, plural), whether it is in a
// namespace, its subresources, and the Go struct it decodes into. Kinds are the rows that are compiled in; Table is what
// a cluster serves, to which registry.AddKind adds. The structs are k8s.io/api's own, so a manifest that works on
// Kubernetes decodes into the very type kubectl uses.
//
// Everything may import api; api imports nothing of minik8s but api/minik8s, the structs of the kinds
// that are our own. It holds no state, so there is nothing for a kill -9 to take.
//
// To add a kind: add a row to Kinds, a strategy to package registry/strategy, columns to package table if name and age
// are not enough, and run go generate in registry/apply. No handler is written.
package api
