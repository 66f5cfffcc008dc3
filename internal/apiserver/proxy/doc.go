// Package proxy forwards any HTTP request to a port of a pod, of a Service's pods or of a node, and sends the answer back:
// the subresource proxy.
//
// It promises: the client's credentials for the API (tokens, impersonation) are not passed on; links to the other side
// itself, in the Location header and in HTML pages of its answers, are changed to go through the API again; its answers
// cannot give other sites' scripts permission (CORS) to read the API's content; upgraded requests (a WebSocket) are
// forwarded too. Of a Service's endpoints only ready ones that are pods of its namespace count.
//
// The caller has authorised the request and provides the connection. It has no state: its connections end with the
// daemon.
//
// Its files:
//
//	target.go service.go   the scheme, name and port in a path, and what they mean for a pod or a Service
//	endpoints.go           one of a Service's pods
//	proxy.go               one request
//	links.go html.go       the addresses in its answer
//	conn.go                a stream to a pod as a connection
package proxy
