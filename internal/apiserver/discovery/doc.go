// Package discovery tells clients which groups, versions, kinds and subresources are served, in both of Kubernetes' ways:
// a document per group and version, and all of it in one (APIGroupDiscoveryList).
//
// It promises that every answer is of the table of kinds as it stands, so that a kind which came while the daemon runs
// is in the next one. apiserver calls it. It has no state.
package discovery
