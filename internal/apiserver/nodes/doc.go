// Package nodes serves what only a node's kubelet can provide: a container's log, its streams (exec, attach,
// portforward), and the images on the node. Each request is passed on to the kubelet's HTTPS server, also to that of
// this machine; a connection that is upgraded is upgraded by the kubelet, and its bytes are passed through. Connections
// to ports of pods and nodes (proxy) are made from here, by their addresses; those to a kubelet's port by the API server's
// own certificate.
//
// It promises: a refusal comes before the connection is upgraded, as an ordinary answer; when a client stops reading
// or disconnects, the work at the kubelet ends too. A kubelet is believed only with a certificate of the cluster's CA
// for the node's name, whatever address its Node object has.
//
// Callers are apiserver and its handlers, which have authorised the request and found the pod. Package kubelet/server
// is the other end, package streaming has the protocols, proxy the HTTP part. It has no state: its streams end with the
// daemon.
//
// Its files: kubelets.go reaches kubelets; logs.go, streams.go, proxy.go and images.go serve requests.
package nodes
