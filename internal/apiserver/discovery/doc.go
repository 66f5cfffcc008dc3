// Package discovery tells clients which groups, versions, kinds and subresources are served, in both of Kubernetes'
// ways: a document per group and version, and all of it in one (APIGroupDiscoveryList, aggregated.go).
//
// It promises that every answer is made from the current table of kinds, so that a kind added while the daemon runs
// is in the next answer, and from what the groups beside the table have now. apiserver calls it. It has no state.
package discovery
