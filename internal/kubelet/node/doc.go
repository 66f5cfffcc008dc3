// Package node keeps the kubelet's Node object and its Lease in the API.
//
// It promises: the Node is registered in at most two writes, and again whenever it is deleted; what others wrote into
// it (labels, taints, capacity of devices) stays. A master's says where its API is (the annotation
// minik8s.io/api-address), for the other machines, and no longer when the machine is no master any more. Its status has the machine's capacity and conditions, in
// Kubernetes' words, and is written when it changes, and every 5 minutes. The Lease is renewed with every heartbeat;
// four heartbeats without a renewal mean that the node is lost, as in Kubernetes (pkg/kubelet/nodestatus, KEP-589).
// It admits pods by the Node's labels and taints. While the machine shuts down, the Node is not ready, and says why.
//
// The kubelet calls it: Register, then Run; Allocatable and Admit at any time. It calls the client, the runtime (for
// images and usage) and reads /proc and the data directory's file system. After a kill -9 the Node is found in the
// API and filled in; nothing else needs to survive.
//
//	node.go         Config, Manager; heartbeats
//	register.go     making the Node, or taking over the one that is there
//	allocatable.go  capacity, and what of it pods may request
//	status.go       the Node's status as a whole; its images
//	conditions.go   pressure of memory, disk and processes; what stops pods' traffic
//	host.go         what the machine is and has
//	admit.go        whether a pod belongs on this node
//	lease.go        the Lease
//	usage.go        what the containers use, for the scheduler
//	watch.go        following the Node object
package node
