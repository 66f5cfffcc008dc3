// Package api names every kind that minik8s serves.
//
// It promises one table, Kinds, with a row per kind: where it stands on the wire (group, version,
// plural), whether it lives in a namespace, and which Go struct it decodes into. The structs are
// k8s.io/api's own, so a manifest that works on Kubernetes decodes into the very type kubectl uses.
//
// Everything may import api; api imports nothing of minik8s but api/minik8s, the structs of the kinds
// that are our own. It holds no state, so there is nothing for a kill -9 to take.
//
// To add a kind: add a row to Kinds, a strategy to package registry, and columns to package
// table. No handler is written.
package api
