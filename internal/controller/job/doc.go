// Package job runs pods until as many have succeeded as a Job wants.
//
// It promises: no pod is counted twice, none is lost, whatever dies in between. A pod carries a
// finalizer from its first moment. When it has ended, its UID is first written into the Job's status
// (uncountedTerminatedPods), then the finalizer is taken off, and only when that was seen does the UID
// turn into a number; every write of the status is guarded by its version. Of an Indexed job the
// completed indexes are written, which can be said twice without harm.
//
// It also promises: failures are retried after a back-off that doubles from 10 s to 10 min, which is
// worked out from the pods themselves; a job that has met its end (backoffLimit, activeDeadlineSeconds,
// failed indexes, a failure policy, a success policy, or success) says so at once, lets its last pods end, and is then
// Complete or Failed, for good; ttlSecondsAfterFinished deletes it later.
//
// It reads Jobs and Pods. It writes Pods (creates, deletes, ownerReferences, finalizers), the status of
// Jobs, and Events on them; it deletes Jobs whose time has come. roles runs it beside the master. It
// keeps nothing that a kill -9 could take.
package job
