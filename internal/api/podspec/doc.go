// Package podspec holds the rules about a pod's spec that more than one component needs: which containers it has and of
// what kind, what it requests of a node, and its quality of service.
//
// It promises Kubernetes' rules, each in one place: the scheduler and the kubelet use the same requests for a pod, and
// the API server writes the same QoS class that the kubelet uses for cgroups.
//
// Any package may call it. It imports only the wire types, holds no state and does no I/O, so a kill -9 loses nothing.
//
//	containers.go  init containers, sidecars, ephemeral containers; the default container
//	ports.go       ports by their names
//	requests.go    requests and limits of the pod as a whole
//	scaling.go     what a utilization of a pod is a percentage of
//	qos.go         Guaranteed, Burstable, BestEffort
//	status.go      entries of a pod's status, by name
package podspec
