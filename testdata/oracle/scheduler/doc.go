// Package scheduler compares the verdicts of minik8s' scheduling filters with those of Kubernetes' own
// filter plugins, on generated nodes and pods. The numbers are seeded: a failure names its seed and
// comes again.
package scheduler
