// Package task runs containers for containerd: it is containerd's runtime of tasks, in place of its manager of shims. Each
// container, and each process that is added to one, has a keeper, a small program in C (deploy/runtime/keeper): it has runc
// make the process, holds the streams open, waits for the end and writes it down. A shim, which containerd would start for
// that, is a Go program of 4 MiB; a keeper is a few pages.
//
// Who calls it: package embed, which gives it to containerd as a plugin; containerd's service of tasks then calls it, for
// the runtime and for who uses containerd's socket (ctr, nerdctl).
//
//	runtime.go  Runtime: what containerd calls; the tasks there are
//	create.go   a task is made, found again after a restart, and removed with all that may exist of it
//	task.go     Task: the container's own process, and what concerns all of the container
//	exec.go     a process that is added
//	process.go  what both have: keeper, streams, signals, the end
//	nursery.go  starts keepers; record.go is what they write
//	runc.go     runc's command lines, errors and state
//	metrics.go  what a container uses, for ctr
//
// # Files
//
// A process has a directory: that of a container is its bundle, those of added processes are in it.
//
//	config.json, rootfs  what runc is given; process.json for an added process
//	task.json            the streams, written before the keeper is started
//	exit                 the end: code and time; spaces until then. The keeper holds its lock, by which it is found
//	alive                a named pipe that the keeper holds open until it has written the end
//	control              a named pipe for commands: start, close the input, the terminal's size
//	started              a named pipe that the keeper opens when the process comes through its gate; while Start waits
//	pid, log.json        runc's: the number of the process, and its errors
//
// # How a container starts
//
// The daemon's one nursery, which is the keepers' program too, forks a keeper: that takes a tenth of a millisecond, and the
// keeper is in the nursery's cgroup from the beginning. The keeper runs "runc create" and adopts the process that this
// leaves. The process then waits at a named pipe of runc's until somebody opens it for reading, which is all that "runc start"
// does. Start tells the keeper to: if the daemon opened the pipe, and were killed before the process had written to it, the
// process would end with code 255 without having run its program.
//
// # Streams
//
// The process has the caller's named pipes themselves, so that nothing copies its output. It may see their names, but not
// reach them: they are in directories of root's. The keeper moves bytes only for a terminal. It holds a reading end of the
// output open, too: a process that writes while no daemon runs waits instead of being killed.
//
// # What survives
//
// Everything, however the daemon ends. Keepers and processes go on; output waits in the pipes, which the keepers hold open
// until they are read. The next daemon reads the directories: a keeper is alive while it holds the lock of the file exit,
// and what has ended meanwhile has its code and time there. A creation that was cut off is removed. If somebody kills a
// keeper, its process goes on and is watched by its number; only the code of its end is not known then.
// After a reboot nothing is left: the directories are on a tmpfs.
package task
