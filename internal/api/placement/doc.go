// Package placement says whether a node is one that a pod asks for: node selectors and node affinity,
// taints and tolerations, host ports.
//
// It promises Kubernetes' rules for one pod and one node, and no more: what else is on the node, and what
// other pods want, is for the scheduler to weigh. A term that cannot be read, which validation has refused
// before, takes no node.
//
// The scheduler asks it before it binds a pod, the kubelet once more when the pod comes, taint eviction
// while it is there. Refusals are how the scheduler says on a pod which nodes refuse it, and how others read that. It
// imports only the wire types, holds no state and does no I/O.
package placement
