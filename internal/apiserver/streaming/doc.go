// Package streaming turns a request into a process's streams, or into connections to ports: the protocols
// of kubectl exec, attach, cp and port-forward. There are two carriers for each, WebSockets (what
// kubectl asks for first) and SPDY/3.1 (what it falls back to, and older clients know), and what is
// carried does not know which. It also sends what is a plain stream elsewhere (watches, logs) as messages of a
// WebSocket, which is how pages in a browser follow them.
//
// It promises: nothing is upgraded before it is known to succeed, so a refusal is an ordinary answer;
// whatever a client does (it vanishes, stops reading, sends nonsense) ends what it had under way and
// no more; the exit code and every failure arrive as a Kubernetes Status. apiserver calls it. It has no
// state: with the daemon its connections end.
package streaming
