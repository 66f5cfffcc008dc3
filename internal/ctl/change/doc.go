// Package change sets single fields of existing objects: labels and annotations, the replicas of a workload, whether a
// node takes pods, the settings of the cluster.
//
// It promises that nothing else in an object changes. If nothing has to change, it says so and writes nothing. The
// commands of ctl and package rollout call it. It keeps no state.
package change
