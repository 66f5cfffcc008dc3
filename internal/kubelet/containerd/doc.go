// Package containerd is the kubelet's runtime on real containers: it implements cri.Runtime with
// containerd 1.7, which runs inside this process unless Config.Socket names one that is already
// running.
//
// Who calls it: roles makes one Runtime per worker and passes it to the kubelet as a cri.Runtime. Nothing else
// imports it. It gets the pods' network as a Network.
//
// # What it is made of
//
// Its subpackages know nothing about pods; the Runtime puts them together:
//
//	embed/      containerd itself, assembled from its plugins, with its socket; or a connection to another's
//	task/       containerd's tasks: containers made by runc, each with a keeper that stays with it
//	bin/        runc, the keeper and pause, inside this binary
//	image/      the image store: references, import, pull, damage found and repaired
//	sandbox/    namespaces, link and scratch directory of a pod; some are made in advance
//	container/  a container's life: create, start, exec, attach, stop, its exit, remove
//	spec/       what a container's process is and is given; pure
//	stdio/      pipes: a container's output to its log and to who is attached; exec's streams
//
//	runtime.go     the Runtime: start, end, look-up; config.go, rundir.go, network.go
//	sandbox.go     a sandbox becomes a pod's; records.go is what is written down about it before; pause.go
//	create.go      a container from its image, its pod's sandbox and its specification
//	containers.go  what is asked of one container, or of all; portforward.go connects to a pod's ports
//	stats.go       what containers and pods use; traffic.go is what went through their networks
//	events.go      what happens to containers becomes a cri.Event; broadcast.go passes it on
//	restore.go     what the last run has left is found again, or removed; garbage.go removes later what is busy
//
// A container's way: EnsureSandbox takes a sandbox that was made in advance, sets its host name and writes hosts,
// hostname and resolv.conf (1 ms). CreateContainer prepares the root file system and the specification concurrently,
// then a keeper has runc make the process (nearly all of the time is runc's). StartContainer lets it run (a read from a
// pipe). The keeper writes the end down; nothing polls for it. To stop a container its process is signalled directly,
// without runc.
//
// # What survives
//
// Everything, however the daemon ends: containers and their keepers are processes of their own, and package task finds them
// again. After a reboot the containers are reported as lost and there are no sandboxes.
//
// Each step that leaves something in the kernel is preceded by a record on disk that names it: the sandbox's
// directory before its namespaces, the pod's record before its sandbox is used, containerd's container before its
// snapshot, task and pipes. At start, what no record names is removed; what is busy then is logged and removed later,
// and does not prevent the start.
package containerd
