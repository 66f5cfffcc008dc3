// Package container is the life of containers, each with the one process that it is made for and the processes that are
// added to it by exec.
//
// Who calls it: the runtime, which keeps one Set, looks up a Container by its id and asks it. The runtime decides what a
// container is made of (Ingredients) and in which order a pod's are made and removed. This package knows neither
// sandboxes, beyond the name of the one that a container is in, nor images, beyond the name of their layers.
//
//	set.go        Set: look-up; Config: what the runtime gives it and is told
//	container.go  Container: what it is (Meta) and how far it is (state), on disk too; Report for the kubelet
//	create.go     directory, writable layer, log, containerd's container, task
//	start.go      start; starterror.go is what runc says when it cannot start one
//	stop.go       stop with grace, kill, signal; remove.go is the end of everything that create has made
//	exit.go       the end is recorded; events.go hears of it in containerd's event stream
//	restore.go    the containers of the last run are found again, or removed
//	exec.go       processes added to a container; session.go kills one with its children
//	attach.go     a container's own streams; pids.go its process namespace
//
// It promises: a container only moves from created to running to exited, each of these once, and each is reported once
// (Config.Changed). Create makes a container completely or not at all. Remove may be called at any time, and again after
// an error. Methods of one container may be called at the same time. A process is never signalled by a number that
// another may have meanwhile.
//
// # What survives
//
// Everything, however the daemon ends: a container's process is its keeper's child (package task). Its directory in
// run/containers is made first and removed almost last; Meta is stored with containerd's container, before its task is
// made, and the state is written to the directory at each change. By these three, Restore finds each container, or what is
// left of it: one whose creation or removal was cut off is removed, one that has ended meanwhile gets its exit code and
// time from its task, and one that was there before a reboot counts as lost. Processes added by exec are killed, because
// their streams are cut off.
package container
