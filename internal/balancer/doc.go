// Package balancer is a local address behind which several servers are: a TCP balancer for clients on this machine. It
// does not look into the streams, so TLS passes through it, and a client checks the server's certificate itself.
//
// It promises:
//   - A connection goes to the upstream that answered last, so that a client's connections stay together; to the next in
//     turn if that one cannot be reached. Which one is the first is random, so that many machines spread.
//   - An upstream that does not answer delays a connection by 200 ms: then the next one is dialled too, and the first to
//     accept has the connection. One that could not be reached, or accepted and then sent nothing, is tried last for a
//     while.
//   - When an upstream leaves the set, its connections are closed, so that clients connect anew.
//   - An upstream that answers and does not do what it is for is left when a client says so (Avoid).
//   - The end of one direction is passed on, and the other direction goes on. An error ends both.
//   - A connection whose way is cut ends a few seconds later, whether it is idle or not (see lostAfter).
//   - If nobody answers, the client's connection is closed, and the log says so once.
//
// A connection has two goroutines, and the kernel moves its bytes (splice). Without connections there is one goroutine,
// which accepts; nothing ticks.
//
// roles runs one on each worker, before the API's masters; on a master it gives one the connections that are not for its
// own API (Relay). It knows nothing of minik8s. It keeps no state: a kill -9 ends the
// connections.
//
//	balancer.go  the set of upstreams; accepting
//	dial.go      which upstream a connection goes to
//	relay.go     one connection
package balancer
