// Package metrics answers what nodes and pods use: the API group metrics.k8s.io, which "kubectl top" and autoscalers ask
// (its types are those of k8s.io/metrics, its rules those of metrics-server).
//
// A Collector asks the nodes by cAdvisor's REST API, which our kubelets serve; with Config.CAdvisor it asks cAdvisors
// that run on the nodes instead. It keeps the last counters of each container and works the rates out when it is asked.
// Its files: collector.go asks and remembers, transport.go is the way to the nodes, api.go is the group.
//
// It promises: nothing is asked of any node while nobody asks here, and then only of the nodes that the question is
// about. A CPU usage is a rate over Config.Window, or as near to it as two samples are that are a second apart or more;
// the first question about a node takes a second therefore. A node that does not answer costs a question three seconds,
// and spoils nothing of the others; the nodes' own rows are then missing. A pod is there with all its running containers,
// or not at all, as in Kubernetes.
//
// roles makes a Collector on each master. What it remembers is in memory alone, and is dropped ten minutes after the
// last question.
package metrics
