// Package local is client.Interface in the master's process: it calls the registry's functions, without HTTP or
// encoding. The objects it returns are the cache's own, shared by all readers.
//
// roles makes one for each part, with the part's identity, so that its rights are checked as they would be over HTTP.
// It has no state.
package local
