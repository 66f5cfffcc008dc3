// Package certs makes the cluster's certificates: its CA, and what that CA signs; and keys for other uses.
//
// It promises: files are written whole or not at all, keys for their owner alone; what is there and
// still good is used again, what is damaged is reported and never overwritten; a server certificate
// that lacks a name or is about to expire is made anew.
//
// roles calls it at start. All of it is files, and survives a kill -9.
package certs
