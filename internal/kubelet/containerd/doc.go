// Package containerd is the kubelet's runtime on real containers: it implements cri.Runtime with
// containerd 1.7, which runs inside this process unless Config.Socket names one that is already
// running.
//
// Who calls it: the composition root makes one Runtime per worker and hands it to the kubelet as a
// cri.Runtime. Nothing else imports it.
//
// # What it is made of
//
//	server.go      containerd itself, assembled from its plugins, with its socket
//	binaries.go    runc, the shim and pause, unpacked from this binary
//	slot.go        a slot is what is costly and the same for every pod: namespaces, the veth, a
//	               shim that waits for work. spare.go keeps one ahead, off a pod's way
//	record.go      what is written down about sandboxes before anything is done about them
//	scratch.go     a small tmpfs of each slot, for the files of the node that containers write to
//	sandbox.go     a slot that has become a pod's; etcfiles.go, pause.go
//	container.go   the life of a container, stop.go its end; spec*.go build its OCI specification,
//	               user.go and facts.go say who it may be and what it may have
//	logs.go        its output, in the CRI format, rotated
//	exec.go        processes that are added to it, outlet.go their output; attach.go joins its own
//	               streams, portforward.go its network
//	events.go      containerd's event stream turned into cri.Event
//	image*.go      the image store: references, import, pull; damage found and mended
//	shimgroup.go   shims live in a cgroup of their own, not in what the daemon was started in
//	restore.go     what the last run has left is found again, or swept away; strays.go
//
// A container's way: EnsureSandbox takes a spare slot, names its host and writes hosts, hostname and resolv.conf (1 ms). CreateContainer
// prepares the root file system and the specification side by side, then the shim has runc make
// the process (30 ms, nearly all of it runc's). StartContainer lets it run (5 ms, runc again). An end is
// told by the shim, and by nobody's asking. To stop it the process is signalled directly, without runc.
//
// # What survives
//
// Everything, when the daemon ends in whatever way: shims and containers are processes of their own
// and containerd finds them again. Its metadata is in bolt databases that are synced to disk on each
// commit, so a power cut leaves them consistent as well; after a reboot the containers are reported
// as lost and the sandboxes are gone.
//
// An image that is said to be imported or pulled is on the disk: the files of a layer are synced before its
// snapshot is committed, and all of the store at the end. Layers of a version that did not wait are compared
// with the content they were unpacked from before their first use, and so is every image whose containers end
// as those of a damaged one do. What differs is unpacked again, in its place; if the content is damaged too,
// the image is removed and its archive imported again, or the kubelet pulls it.
//
// Each step that leaves something in the kernel is preceded by a record on disk that names it: the
// slot's directory before its namespaces, the sandbox's record before its slot is used, containerd's
// container before its snapshot, task and pipes. At start, what no record claims is removed; what is
// busy then is told and tried again, and keeps nothing from starting.
package containerd
