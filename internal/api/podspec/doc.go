// Package podspec holds the rules about a pod's specification that more than one part needs: which
// containers it has and what kind each is, what it requests of a node, its quality of service.
//
// It promises Kubernetes' rules, each in one place: the scheduler counts a pod by the same requests as the
// kubelet admits it by, and the API server writes the same QoS class as the kubelet puts into cgroups.
//
// Any part may call it. It imports only the wire types, holds no state and does no I/O, so there is nothing
// to survive a kill -9.
//
//	containers.go  init containers, sidecars, ephemeral containers; which is meant when none is named
//	requests.go    requests and limits of the pod as a whole
//	qos.go         Guaranteed, Burstable, BestEffort
//	status.go      entries of a pod's status, by name
package podspec
