// Package rollout watches, undoes, pauses and restarts rollouts of a workload, as kubectl rollout does and with the
// same annotations.
//
// It promises that undo restores a template exactly, instead of merging it with the present one. ctl's rollout calls it
// for objects of Kinds. It keeps no state: revisions are in the cluster's ReplicaSets and ControllerRevisions.
package rollout
