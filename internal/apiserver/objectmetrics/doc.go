// Package objectmetrics says in Prometheus' text format what the API knows of the cluster's objects, under the names of
// kube-state-metrics (the docs of github.com/kubernetes/kube-state-metrics), for which public dashboards and rules ask.
//
//	kinds.go        the table of kinds; a new one is a file with its families and a row there
//	nodes.go        Node, Namespace
//	pods.go         Pod; containers.go: its containers, and what they ask for
//	workloads.go    Deployment, ReplicaSet, ReplicationController, DaemonSet, Job
//	services.go     Service, EndpointSlice, Ingress, ConfigMap (that it exists, not what it says)
//	autoscalers.go  HorizontalPodAutoscaler
//
// It promises: nothing is kept, and nothing done until somebody asks; the page is computed from the objects of that
// moment and sent as it grows. Objects are only read. Every name has its type and help once, and no two samples of it
// have the same labels. Left out are what is true of no kind here, and labels and annotations (kube_pod_labels), which
// kube-state-metrics too gives only where somebody lists them. Nothing of a Secret is told.
//
// The API server's /metrics/objects calls it. It has no state.
package objectmetrics
