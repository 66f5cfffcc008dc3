// Package channels is shared by both ends of kubectl exec, attach and port-forward. It carries several streams over one
// WebSocket, numbered as in Kubernetes' channel protocol. It also makes a WebSocket a plain connection, through which a
// protocol with more streams (SPDY) can run.
//
// It promises that several goroutines may write at the same time, and that a message arrives whole. It does not know
// pods. streaming and client/remote use it. It keeps no state.
package channels
