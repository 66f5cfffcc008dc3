// Package channels is what both ends of kubectl exec, attach and port-forward have in common: several
// streams on one WebSocket, as Kubernetes' channel protocol numbers them, and a WebSocket as the plain
// connection that a protocol of more streams (SPDY) runs through.
//
// It promises: writers may be used side by side; a message arrives whole. It knows
// nothing of pods. apiserver/streaming and client/remote use it. It keeps no state.
package channels
