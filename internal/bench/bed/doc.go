// Package bed is what all measurements of the bench need: a daemon to measure, and ways to ask it, to watch it, to load it and
// to weigh it.
//
//	daemon.go     a minik8sd in an empty directory: start, requests, stop
//	watch.go      watches, and waiting for an event
//	objects.go    pods that many measurements use
//	samples.go    times and their percentiles; many requests at once; what a synced write takes
//	processes.go  memory and processor time of a daemon and of what it has started
//	benchmark.go  figures of a benchmark in a package's tests
//	report.go     the figures, as they are printed and written
//
// It imports nothing of the daemon: what it knows of it is what a client sees. All rooms of the bench use it, and nothing else
// does. What it starts ends with Stop, which removes files and cgroups, too.
package bed
