// Package token has the tokens of service accounts that pods have in their volumes, as Kubernetes' pkg/kubelet/token: a
// token is used for four fifths of its lifetime, then there is a new one.
//
// Who calls it: package volume's source in the kubelet, for the content of a projected volume (Get); the kubelet, to
// write the volume again in time (NextRenewal) and when a pod is gone (Drop).
//
// It promises that a renewal that fails takes no token away that is still valid. Nothing here survives the daemon: new
// tokens are requested then, and the old ones stay valid until their end.
package token
