// Package deployment rolls out the templates of Deployments: each template has a ReplicaSet, and the new one is
// scaled up as the old ones are scaled down.
//
// It promises: with RollingUpdate never more pods than replicas + maxSurge are wanted, and never so many removed that
// fewer than replicas - maxUnavailable could be available; with Recreate no new pod before the last old one has
// ended; a rollout that makes no progress is reported after progressDeadlineSeconds; kubectl's rollout and scale find
// the annotations, conditions and revisions that they read.
//
// It reads Deployments and ReplicaSets. It writes ReplicaSets, the status and the revision annotation of
// Deployments, and Events on them. roles runs it beside the master. It keeps nothing: every step is
// decided from the objects as they stand, so a rollout goes on after a kill -9 where it was.
package deployment
