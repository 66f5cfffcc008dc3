// Package hostports gives pods their ports of the node: those that their containers ask for by number, and free ones
// where the annotation minik8s.io/random-host-ports or the daemon's setting asks for them.
//
// Who calls it: the kubelet, before it makes a pod's sandbox (Of) and when the pod is torn down (Free). The runtime
// forwards the ports.
//
// It promises that a pod keeps the ports it has: they are written to its annotation minik8s.io/host-ports before they
// are used, and that is what survives a kill -9. The same free port is given to one pod only, of those that Of has seen
// since the start.
package hostports
