// Package machines measures the daemon as such: one that starts and has nothing to do, and several on hosts of their own that
// are one cluster.
//
//	start.go      size, start and idle: the one file, and a daemon with nothing to do
//	tricks.go     tricks: what each optimisation gains
//	lab.go        the hosts of the other files
//	workers.go    workers: one that joins, starts again and rests; follow.go: how soon it knows of other Nodes
//	elsewhere.go  elsewhere: the replicas of a worker that was lost
//	masters.go    masters: three of them, whose leader is killed
//	elections.go  elections: three of them under full load
//	hollow.go     hollow: one with very many workers, which have no containers
//
// The command bench calls it, with one function for each part. Nothing stays behind: each part removes the daemons and hosts
// that it has started.
package machines
