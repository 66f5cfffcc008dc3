// Package bootstrap is how a machine gets its first credentials: join tokens.
//
// A join token is "ID.SECRET.PIN". ID and SECRET are a bootstrap token of Kubernetes: the master keeps it as the
// Secret bootstrap-token-ID in kube-system, with the same keys as kubeadm's, and it authenticates a machine as
// system:bootstrap:ID, who may ask for a certificate and nothing else. PIN identifies the cluster's CA (the SHA-256 of
// its public key), so that the machine knows whom it tells the secret: the API server sends the CA along in its
// handshake.
//
// It promises: a secret is compared in constant time, is in no error and no log, and is sent only to a server whose CA
// has the pin.
//
// Callers are registry (authentication), ctl and the end-to-end tests (new tokens), and roles (joining). It has no
// state: tokens are objects of the API.
package bootstrap
