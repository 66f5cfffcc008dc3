// Package change sets single fields of objects that exist: labels and annotations, the replicas of a workload, whether a
// node takes pods, the settings of the cluster.
//
// It promises that nothing else of an object is touched, and that what is so already is said and not written. The commands
// of ctl call it, and rollout. It keeps no state.
package change
