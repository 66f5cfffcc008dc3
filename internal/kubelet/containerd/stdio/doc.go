// Package stdio is the standard streams of containers and of processes added to them: named pipes, whose other end is
// the keeper's, or that of an external containerd's shim.
//
// Who calls it: the runtime: an Output per container, a Pipe per stream of exec, a Listener per attached client.
//
//	output.go    Output: a container's pipes, cut into lines, to its log and its listeners
//	logfile.go   the log, in the format of Kubernetes' container runtimes, rotated by size
//	listener.go  Listener: who is attached
//	pipe.go      Pipe: the output of exec; input
//
// It promises that a process never blocks on its output for long: output that cannot be written to the log is
// buffered, and beyond that counted and dropped; a listener that stops reading is detached after 10 s.
//
// # What survives
//
// The pipes are in the kernel; the keeper holds its ends open. While no daemon reads, each holds 64 KiB of output, and
// then the container blocks; the next daemon continues where the last one stopped. A line that was cut off by the end
// of the daemon is marked partial (P) in the log.
package stdio
