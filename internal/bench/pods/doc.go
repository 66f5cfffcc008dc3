// Package pods measures pods that really run on a node.
//
//	pods.go       pods: from the POST until one runs, and until it is gone; a hundred at once
//	bare.go       what containerd alone takes for the same, which is the lower limit
//	weight.go     weight: what idle pods cost beside their programs
//	workloads.go  workloads: a ReplicaSet that is scaled up and down
//	streams.go    streams: exec and logs
//	metrics.go    metrics: what it costs to ask what pods use, and how soon replicas follow a load
//
// The command bench calls it, with one function for each part. Nothing stays behind: each part removes the daemon that it has
// started.
package pods
