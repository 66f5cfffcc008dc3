// Package nodes serves what only a node's agent can provide: a container's log, its streams (exec, attach,
// portforward), connections to a pod's ports (proxy), and the images on the node.
//
// It promises: a refusal comes before the connection is upgraded, as an ordinary answer; when a client stops reading
// or disconnects, the work at the agent ends too. Agents is the interface to the nodes, which roles implements.
//
// Callers are apiserver and its handlers, which have authorised the request and found the pod. Package streaming has
// the protocols, proxy the HTTP part. It has no state: its streams end with the daemon.
//
// Its files: agents.go has the interface; logs.go, streams.go and images.go serve requests.
package nodes
