// Package objects measures the API server, the store and the scheduler with objects that nothing runs for.
//
//	api.go        api: creates, gets, lists and watches of small objects, over TLS
//	scheduler.go  scheduler: the scheduler alone, with an API that costs nothing
//	many.go       many: pods that get nodes, through the API; the master's memory with very many of them
//	big.go        big: watches and lists of 50,000 pods, and a watch that resumes after a restart
//
// The command bench calls it, with one function for each part. Nothing stays behind: each part removes the daemon that it has
// started.
package objects
