// Package daemonset keeps one pod of every DaemonSet on every eligible node.
//
// It promises: a node gets its pod as soon as it is there, and never two that both stay; the pods carry the
// tolerations that Kubernetes gives them, and a node affinity for their one node, so that only the scheduler binds
// them; a rolling update never takes more than maxUnavailable pods that were available, nor adds more than maxSurge;
// every template is kept as a ControllerRevision, which kubectl rollout history and undo read.
//
// It reads DaemonSets, Nodes, Pods and ControllerRevisions. It writes Pods, ControllerRevisions, the status of
// DaemonSets, and Events on them. roles runs it beside the master. After a kill -9 only the back-offs of failed pods
// are lost.
package daemonset
