// Package job runs pods until as many have succeeded as a Job wants.
//
// It promises: every pod is counted exactly once, whatever process is killed in between. It is done as in Kubernetes
// (KEP-2307). A pod carries a finalizer from its creation. When it has ended, its UID is first written into the Job's
// status (uncountedTerminatedPods), then the finalizer is removed, and only when the informer shows that is the UID
// replaced by a number; every write of the status is guarded by its resourceVersion. For an Indexed job the completed
// indexes are written, which may be written twice without harm.
//
// It also promises: failures are retried after a back-off that doubles from 10 s to 10 min, which is worked out from
// the pods themselves; a job whose outcome is decided (backoffLimit, activeDeadlineSeconds, failed indexes, a failure
// policy, a success policy, or success) has a condition that says so at once; when its last pods have ended it is
// Complete or Failed, for good; after ttlSecondsAfterFinished it is deleted.
//
// It reads Jobs and Pods. It writes Pods (creates, deletes, ownerReferences, finalizers), the status of Jobs, and
// Events on them; it deletes Jobs whose TTL has passed. roles runs it beside the master. It keeps nothing that a kill
// -9 could lose.
package job
