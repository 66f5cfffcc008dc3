// Package certs makes the cluster's certificates: its CA, the certificates that the CA signs, and keys for other uses.
//
// It promises: files are written completely or not at all. Only their owner can read keys. Existing certificates that
// are still good are used again. Damaged ones are reported and never overwritten. A server certificate that lacks a
// name or is about to expire is made again.
//
// Package roles calls it at start. Everything is in files and survives a kill -9.
package certs
