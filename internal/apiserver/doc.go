// Package apiserver puts the registry on the wire: Kubernetes' HTTP API, so that stock kubectl and
// client-go work, easy to reach with curl.
//
// It promises: who asks is known before anything else, and nobody else gets beyond health and version; every refusal is
// a Kubernetes Status; a panic is a 500 for its request alone; nothing is served before every listener is open. What
// its rooms promise is in their own doc.go.
//
// It decides nothing about objects: that is registry's. roles starts it. It has no state; requests
// that were under way when the daemon was killed either took effect (and are on disk) or did not.
//
// The way of a request, each step a room of its own:
//
//	listen.go            the HTTPS port and root's unix socket
//	guard.go             around every request: panics, errors, counting
//	authentication/      who asks
//	server.go            which paths there are
//	handlers/            every kind: path, authorisation, verb
//	flowcontrol/         its turn, and answers that a client has to take in time
//	encoding/            objects, lists, events and errors as bytes
//	nodes/               what only a node can give: logs, streams, images; proxy/ and streaming/ are its protocols
//	discovery/ openapi/  which kinds there are, and what they look like
//	health.go            health, metrics, profiles; wellknown.go: version, paths, the tokens' issuer
package apiserver
