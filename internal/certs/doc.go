// Package certs makes the cluster's certificates: its CA, the certificates that the CA signs, and keys for other uses.
//
// It promises: files are written completely or not at all. Only their owner can read keys. Existing certificates that
// are still good are used again. Damaged ones are reported and never overwritten. A server certificate that lacks a
// name or is about to expire is made again. A Kept is renewed in a running process.
//
//	certs.go    the CA and what it signs for this machine
//	request.go  requests of other machines, and their certificates
//	kept.go     certificates in use, which are renewed
//	key.go      keys for other uses
//
// Package roles calls it at start, the certificates controller signs requests by it. Everything is in files and
// survives a kill -9.
package certs
