// Package rollout watches, undoes, holds back and repeats the replacing of a workload's pods, as kubectl rollout does and by
// the same annotations.
//
// It promises that a template that is gone back to is what it was, not a merge with the one before. ctl's rollout calls it,
// for objects of Kinds. It keeps no state: revisions are the cluster's own ReplicaSets and ControllerRevisions.
package rollout
