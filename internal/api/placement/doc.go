// Package placement has Kubernetes' rules about where a pod may be: node selectors and node affinity, taints and
// tolerations, host ports, which pods a term of pod affinity selects, and which nodes and pods a topology spread
// constraint counts.
//
// It promises the rules, each in one place, and nothing else: the caller knows what is on a node and which rules apply.
// An invalid selector, which validation has already refused, selects nothing.
//
// The scheduler uses it before it binds a pod, the kubelet when the pod arrives, taint eviction while the pod is there,
// and `minik8sd ctl why` to explain why no node took a pod. With Refusals the scheduler records on a pod which nodes
// refuse it, and others read that. It imports only the wire types and podspec, holds no state and does no I/O.
package placement
