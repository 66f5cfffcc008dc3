// Package apiserver puts the registry on the wire: Kubernetes' HTTP API, so that stock kubectl and
// client-go work, easy to reach with curl.
//
// It promises: every kind of the registry's table is served by the same handlers (there is none per
// kind); answers are JSON, YAML, Kubernetes' protobuf, Tables or bare metadata, as the client asks;
// every refusal is a Kubernetes Status; who asks is known by a client certificate of the cluster's
// CA, by a token, or is root on the unix socket, and nobody else gets beyond health and version. One table of
// routes says as what verb each path and method is authorised, before a body is read; who impersonates is
// judged as whom they name, or refused.
//
// What is under way is bounded (flow), lists and bursts of a watch are sent piece by piece and never built
// whole, and a client that does not take a piece in time is cut off (paced).
//
// What is below a pod and no object (exec, attach, portforward) makes other use of the connection: package
// streaming has the protocols, Nodes the other end. The proxy passes any request on to a port of a pod, without what
// the client has shown to the API.
//
// It decides nothing about objects: that is registry's. roles starts it. It has no state; requests
// that were under way when the daemon was killed either took effect (and are on disk) or did not.
package apiserver
