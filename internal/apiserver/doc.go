// Package apiserver puts the registry on the wire: Kubernetes' HTTP API, so that stock kubectl and
// client-go work, easy to reach with curl.
//
// It promises: every kind of the table api.Kinds is served by the same handlers (there is none per
// kind); answers are JSON, YAML, Kubernetes' protobuf, Tables or bare metadata, as the client asks;
// every refusal is a Kubernetes Status; who asks is known by a client certificate of the cluster's
// CA, or is root on the unix socket, and nobody else gets beyond health and version.
//
// What is below a pod and no object (exec, attach, portforward) makes other use of the connection: package
// streaming has the protocols, Nodes the other end.
//
// It decides nothing about objects: that is registry's. roles starts it. It has no state; requests
// that were under way when the daemon was killed either took effect (and are on disk) or did not.
package apiserver
