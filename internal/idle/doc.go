// Package idle keeps connections to a server for their next use.
//
// Who calls it: the gateway for the endpoints of Services, functions for their instances. It promises: a connection is kept for a while, so
// many at most, and none once the server is gone; a timer runs only while there are some. Whether the server has closed one meanwhile, or
// has said what nobody asked for, is for who takes it to look at (Conn.Alive). Nothing survives.
package idle
