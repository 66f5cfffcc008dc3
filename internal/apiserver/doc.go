// Package apiserver serves the registry as Kubernetes' HTTP API, so that stock kubectl and client-go work, and curl
// is easy to use.
//
// It promises: the user is determined before anything else, and an unknown client reaches only health and version;
// every refusal is a Kubernetes Status; a panic is a 500 for its own request only; nothing is served before every
// listener is open. The promises of its packages are in their own doc.go.
//
// It decides nothing about objects: registry does. roles starts it. It has no state; requests that were under way
// when the daemon was killed either took effect (and are on disk) or did not.
//
// The way of a request, each step a file or package of its own:
//
//	listen.go            the HTTPS ports, of which one may serve images alone, and root's unix socket
//	guard.go             around every request: panics, errors, counting
//	authentication/      the user of the request
//	server.go            the paths
//	handlers/            every kind: path (requestinfo/), authorisation, verb
//	aggregator/          groups that are answered otherwise, through a door of the same checks
//	flowcontrol/         limits on requests under way
//	encoding/            objects, lists, events and errors as bytes
//	nodes/               what only a kubelet can serve: logs, streams, images; proxy/ forwards to ports of pods
//	members/             other masters: joining, members, snapshots
//	discovery/ openapi/  the kinds and their fields
//	objectmetrics/       what there is of every kind, for Prometheus, at /metrics/objects
//	health.go            health, metrics, profiles; wellknown.go: version, paths, the tokens' issuer
package apiserver
