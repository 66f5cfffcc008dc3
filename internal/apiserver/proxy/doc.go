// Package proxy forwards any HTTP request to a port of a pod, and sends the answer back: the subresource proxy.
//
// It promises: the client's credentials for the API (tokens, impersonation) do not reach the pod; links to the pod
// itself, in the Location header and in HTML pages of its answers, are changed to go through the API again; a pod
// cannot give other sites' scripts permission (CORS) to read the API's content; upgraded requests (a WebSocket) are
// forwarded too.
//
// The caller has authorised the request and provides the connection. It has no state: its connections end with the
// daemon.
//
// Its files:
//
//	target.go   the scheme, pod and port in a path
//	proxy.go    one request
//	links.go html.go    the addresses in its answer
//	conn.go     a stream to a pod as a connection
package proxy
