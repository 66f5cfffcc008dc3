// Package kubelet makes the pods of one node run and tells the API how they are.
//
// It promises: every pod bound to the node is made to run as its spec says, and its status is true, in Kubernetes'
// words. One worker per pod decides from the present state (the API's object, the runtime's state, the back-offs that
// it remembers, the time), never from past events; it is woken by a change of the object, by the runtime's events and
// by its own timers, and sleeps otherwise. A failure of one pod, even a panic in its worker, never affects another.
//
// Package plan decides what to do with a pod and package status makes its status, both pure; this package has the
// loops around them: it reads, calls them, carries the actions out and writes. A pod is started in stages: admission,
// cgroup, volumes, images, sandbox, containers. Each has an undo that may run twice, or without its stage. It ends in
// reverse: stop, final status, containers, sandbox, volumes and cgroup, and last the API's object.
//
// It reads the pods of its node, the ConfigMaps and Secrets that they use, and its Node. It writes the status of
// those pods, finishes their deletion, and writes the annotation minik8s.io/host-ports, its Node and its Lease, and
// Events.
//
// When the machine shuts down, and not when only the daemon ends, package shutdown has the pods end before.
//
// What survives a kill -9: all pods keep running. Containers, their attempts (restart counts) and addresses are found
// in the runtime; the rest is read back from the pods' status. Only back-offs are estimated, from the restart count. A
// worker that starts while no master can be reached goes on with the pods that it has written down (package checkpoint).
//
// roles calls it; it calls client, cri, events and its own subpackages, and never the store or the API server.
//
//	kubelet.go             Config, Run, the workers
//	watch.go               pods from the API to their workers
//	worker.go, inbox.go    one pod: look, write the status, decide, act
//	admission.go           counting what the node's pods request
//	actionrun.go           one action: started, finished, failed
//	effects.go             what each action does; image.go, startcontainer.go and hooks.go for the longer ones
//	startlimit.go          how many containers start at a time
//	probing.go             running probes
//	shuttingdown.go        pods end because the machine shuts down
//	publish.go             writing the status; Events of back-offs
//	cgroups.go, terminationmessage.go, refs.go   what pods need on the node
//	leftovers.go           what a kill -9 left on the disk
//
//	plan        what to do next for a pod: restarts, back-offs, probes, ending
//	status      what a pod's status says
//	podconfig   from a pod's spec to the runtime's configuration
//	images      pulling, and when a pull is retried
//	node        the Node, its allocatable resources, its Lease
//	objects     the ConfigMaps and Secrets in use
//	shutdown    in which order and how long pods end when the machine shuts down
//	checkpoint  the pods in files, for a start without the API
//	work        whose turn it is to use the processors: volumes and cgroups here, sandboxes and containers in the runtime
//	volume, cgroup, hostports, token, logs, probe, resolvconf   one thing each
//	connect     the pods as clients reach them: logs, exec, attach, port-forward
//	server      the same, images and statistics over HTTPS, for the API server
//	cri         the seam to the runtime; containerd is behind it
package kubelet
