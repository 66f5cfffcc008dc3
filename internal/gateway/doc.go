// Package gateway answers HTTP on every node for the objects that lead hosts and paths to Services: DNS objects at their own
// addresses, Ingresses at addresses of the node. It goes straight to the pods, without another container.
//
// Who calls it: roles, as a part on every node that has pods. It is given the front ends (what makes routes), and the
// Services and EndpointSlices of all namespaces as informers; it runs them all. The addresses of DNS objects are put on the
// node by others: the gateway binds before they are there.
//
//	routes      the table: which route a request takes. Pure; knows no front end
//	frontends   from DNS objects and Ingresses to routes. Pure
//	backends    the endpoints of the Services that routes lead to, which of them is next, which are skipped
//	plain       plain HTTP/1.1 requests that fit a buffer, most of them, with far less work for each than net/http has. A
//	            connection whose next request is anything else is handed to net/http with it, for good
//	wire        heads and chunks of plain HTTP/1.1. Pure
//	pages       what it says itself when a request leads nowhere
//	gateway.go  the part: follows the kinds, makes a new table when something changes
//	follow.go   Services and their endpoints, as far as routes lead to them
//	doors.go    listeners, which come and go with the addresses
//	serve.go    requests by net/http: HTTP/2, gRPC, WebSocket, long bodies; everything may go this way
//	tls.go      certificates
//
// It promises:
//
//   - The route of a request: that of its address and host first (an exact name before a wildcard of one label before any
//     host), then the exact path, then the longest prefix that ends at a segment's boundary. Of two owners that want the
//     same the older has it, on every node alike.
//   - A change of routes or endpoints is in effect for the next request, and cuts no other.
//   - Endpoints take turns, unless the Service has sessionAffinity ClientIP: then a client's own is asked, and another one only when
//     that fails. They are spoken with as the appProtocol of the Service's port says: https and kubernetes.io/wss by TLS, without
//     asking who they are, kubernetes.io/h2c and grpc by HTTP/2, all others by HTTP/1.1. One that refuses, does not answer the dial, or breaks before it has answered anything is left
//     out for a while, and the request goes to the next if that cannot do anything twice: no connection was made, or the
//     method is idempotent and the body has not been read.
//   - What clients say of themselves in X-Forwarded-*, X-Real-IP and Forwarded is replaced. The request line and the
//     headers are written anew; a request whose end could be read in two ways is refused.
//   - A client that goes ends its request at the endpoint, too. Bodies may take as long as they like; heads may not.
//   - Connections are shared among clients, so that one cannot take all. Who takes nothing of what it is sent for a minute is
//     cut off, and so is an endpoint that has not begun to answer within a minute, but for gRPC, whose streams may begin late.
//   - A request that gateways lead in a circle, over the addresses of several nodes, ends after four of them (508).
//   - It never connects to loopback or link-local addresses, whatever an object says: what listens there is the node's.
//   - No route: no listener and no goroutine. No certificate is read before somebody asks for its host; from then
//     on its Secret is followed, and a renewed one is shown at the next handshake.
//
// # What survives
//
// Nothing: connections end with the process, also by kill -9; routes and endpoints are read again.
package gateway
