// Package node has Kubernetes' own code say of requests by nodes whether they are allowed: the node authorizer with its
// graph of pods, the rules of RBAC that every cluster begins with, and the admission plugin NodeRestriction. The verdicts
// are in a file that a test of our API server reads, which sends it the same requests.
//
// Its files:
//
//	objects.go        the cluster: nodes, pods and what they refer to
//	requests.go       what is asked, by whom: some by hand, a sweep over all kinds, reads by chance
//	verdicts_test.go  what upstream says; the file
package node
