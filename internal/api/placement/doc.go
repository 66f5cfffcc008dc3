// Package placement has Kubernetes' rules about where a pod may be: node selectors and node affinity, taints and
// tolerations, host ports, which pods a term of pod affinity chooses, which nodes and pods a topology spread
// constraint counts.
//
// It promises the rules, each in one place, and no more: what is on a node and which of them apply is for the caller to
// know. A selector that cannot be read, which validation has refused before, chooses nothing.
//
// The scheduler asks it before it binds a pod, the kubelet once more when the pod comes, taint eviction while it is
// there, and `minik8sd ctl why` when it explains why no node took it. Refusals are how the scheduler says on a pod which
// nodes refuse it, and how others read that. It imports only the wire types and podspec, holds no state and does no I/O.
package placement
