// Package wire reads the heads of plain HTTP/1.1 messages, and bodies in chunks, without allocating. It is strict: what it
// does not take is not malformed, only not plain, and for somebody else to judge. Pure.
//
// Who calls it: package gateway, for the requests that make up most of the traffic. A head points into the buffer that it was
// read from. Nothing survives.
package wire
