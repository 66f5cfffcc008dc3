// Package certificates decides about requests for certificates (CertificateSigningRequest), signs those that are
// approved, and deletes those that are done with.
//
// It approves by itself what a machine of this cluster may have, and denies what it may not: a kubelet's client
// certificate for who shows a join token, if the node's name is free or already this machine's; the same again from
// the kubelet itself, before the old one expires; and a kubelet's serving certificate for the addresses of its own
// Node. Any other request waits for a person ("kubectl certificate approve"). It signs for the three signers of
// Kubernetes whose certificates this CA may make: kube-apiserver-client, kube-apiserver-client-kubelet and
// kubelet-serving, with the rules of Kubernetes' signers; requests to others are left to them.
//
//	plan.go       what becomes of a request: pure
//	controller.go the loop
//
// It reads CertificateSigningRequests and Nodes and writes the former. roles runs it beside the master. It keeps
// nothing: after a kill -9 the requests say how far they are.
package certificates
