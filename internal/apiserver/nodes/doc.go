// Package nodes serves what only the agent of a node can give: a container's log, its streams (exec, attach,
// portforward), connections to a pod's ports (proxy), and the images on the node.
//
// It promises: whatever is refused is refused before the connection is upgraded, as an ordinary answer; what a client
// stops reading, and what it leaves, ends at the agent too. Agents is the seam to the nodes, which roles fills.
//
// Callers are apiserver and its handlers, which have authorised the request and found the pod. Package streaming has the
// protocols, proxy what is HTTP. It has no state: with the daemon its streams end.
//
// Its files: agents.go is the seam, logs.go, streams.go and images.go what is served.
package nodes
