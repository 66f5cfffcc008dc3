// Package kubelet makes the pods of one node real and tells the API how they are.
//
// It promises: every pod bound to the node is brought to what its spec says, and its status says
// what is true, as Kubernetes words it. One worker per pod decides from levels (the API's object,
// the runtime's view, remembered back-offs, the clock), never from the story of how it came there;
// it is woken by a change of the object, by the runtime's event stream and by its own timers, and
// sleeps otherwise. The decision is the pure function decide (plan.go); worker.go acts on it.
// Trouble with one pod, even a panic in its worker, never touches another.
//
// Containers come up in turn: init containers one by one, sidecars among them, the main ones together; they
// go in reverse. A probe or a postStart hook that fails condemns its container: it is stopped and begun anew,
// as its restartPolicy says. Probes count only while their container runs; a pod that has none costs nothing.
// Ephemeral containers are started beside them, once, as soon as there is a sandbox; nothing waits for them.
// What a pod needs and does not find (a ConfigMap, a key) holds it until that comes; no clock is asked.
//
// A pod is brought up in stages, each with an undo that may run twice and without its do:
// admission, cgroup, volumes, images, sandbox, containers. It goes down in reverse: stop, final
// status, containers, sandbox, volumes and cgroup, and last the API object.
//
// What the kubelet reads: pods of its node, the ConfigMaps and Secrets that those name, its Node. What it writes: the status and the end of
// those pods, the annotation minik8s.io/host-ports, its Node and its Lease, Events.
//
// What survives a kill -9: all pods keep running. Containers, their attempts (restart counts) and
// addresses are found again in the runtime; the rest is read back from the pod's status. Only
// back-offs are guessed anew, from the restart count.
//
// roles calls it; it calls client, cri, events and its own subpackages, and never the store or the
// API server.
package kubelet
