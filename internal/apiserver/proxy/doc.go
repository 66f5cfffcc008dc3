// Package proxy passes any HTTP request on to a port of a pod, and the answer back: the subresource proxy.
//
// It promises: what the client has shown to the API (tokens, impersonation) does not reach the pod; links of the answer
// that lead to the pod itself, in its Location header and in a page of HTML, lead through the API again; other sites'
// scripts get no leave from a pod to read what is the API's; a request that is upgraded (a WebSocket) is passed on too.
//
// The caller has authorised the request and gives it the connection. It has no state: with the daemon its connections end.
//
// Its files:
//
//	target.go   which scheme, pod and port a path names
//	proxy.go    one request
//	links.go html.go    the addresses in its answer
//	conn.go     a stream to a pod as a connection
package proxy
