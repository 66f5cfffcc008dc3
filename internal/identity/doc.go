// Package identity gives a worker that is not a master its certificates: the one by which its kubelet is known to the
// API, and the one of the kubelet's server.
//
// A machine joins with a join token (package bootstrap): it fetches the cluster's CA, checks it by the token's pin, and
// asks for the kubelet's client certificate by a CertificateSigningRequest. From then on the token is not needed any
// more. The serving certificate is asked for with the kubelet's identity, once its Node has its addresses. Both are
// renewed in the same way before they expire, for the same key: by the key the cluster knows the machine.
//
// The CA is fetched from the server that the machine was given. Everything after that goes to the address behind which all
// masters are, so that a machine that has joined needs no certain one.
//
// It promises: the token is sent only to a server with the right CA; a refusal that trying again does not cure ends the
// daemon, with what to do; masters that are away are waited for, and not needed at all once the machine has joined.
//
// roles makes one Identity per worker. Everything is in files of its directory (ca.crt, node.key, node.crt,
// kubelet.crt) and survives a kill -9; the key is written before it is asked for a certificate of it, so that a machine
// that was killed while it joined keeps its name.
package identity
