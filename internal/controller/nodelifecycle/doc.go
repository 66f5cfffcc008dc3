// Package nodelifecycle detects silent nodes, whose Lease is not renewed. It marks them Ready=False, later Ready=Unknown,
// and taints them, so that no new pods are scheduled there, and removes the taint when the node is back. It also keeps the
// taints of the other conditions, such as DiskPressure, and of cordoned nodes.
//
// A node counts as silent when this controller has seen no heartbeat for Times.Grace, by its own clock; the nodes'
// clocks do not matter. Kubernetes marks it Unknown then; the seed systems have a rung before, and so has this one:
// Unknown comes after Times.Unknown. After Times.Remove its Node is deleted, and with it its pods (package podgc), bare ones too; a
// machine that comes back registers anew. After a start of the controller every node has the full time again. While so
// many nodes are silent that the master itself may be cut off, no pod is evicted and no Node removed.
//
// It reads Nodes and Leases, deletes lost Nodes, and writes a silent Node's conditions, the taints of all, and the Ready condition of the pods of
// a node that is not ready. It sleeps until the next Lease could be late; it does not poll. roles runs it beside the
// master. It keeps nothing that the next list does not bring back: a controller that takes over finds the nodes that
// are not ready, and marks their pods. (Package tainteviction evicts the pods.)
package nodelifecycle
