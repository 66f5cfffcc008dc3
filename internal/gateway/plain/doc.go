// Package plain serves the requests that make up most of the traffic: HTTP/1.1, without an upgrade, head and body in one small
// buffer. It hands a connection on with the first request that is anything else, and does not get it back; so it needs to know
// nothing else of HTTP, and whoever takes over must know all of it.
//
//	server.go    what it is made from
//	plain.go     requests
//	ask.go       the endpoints in turn, until one answers
//	relay.go     answers
//	watch.go     clients that go while they wait
//
// Who calls it: package gateway, whose tests cover it by HTTP. A request is in memory as a whole before it is sent, so it can
// be sent again; of an answer there is never more than a buffer. Nothing survives.
package plain
