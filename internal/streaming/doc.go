// Package streaming turns a request into a process's streams, or into connections to ports: the protocols of kubectl
// exec, attach, cp and port-forward. Each has two transports: WebSockets, which kubectl tries first, and SPDY/3.1,
// its fallback and the one of older clients. The code above the transports does not know which one is used. The
// package also sends plain streams (watches, logs) as messages of a WebSocket, so that pages in a browser can follow
// them.
//
// It promises: a connection is upgraded only once success is certain, so a refusal is an ordinary answer; a client
// that vanishes, stops reading or sends nonsense ends its own work and nothing else; the exit code and every failure
// arrive as a Kubernetes Status; an answer is sent in pieces, and a client that does not read a piece in time is cut off
// (Writer). The kubelet's server calls it for streams, the API server for watches and logs. It has no state: its
// connections end with the daemon.
package streaming
