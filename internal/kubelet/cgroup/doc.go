// Package cgroup makes and removes the cgroup of a pod, inside which the runtime makes those of its
// containers: ROOT/pod<uid> for Guaranteed pods, ROOT/burstable/pod<uid> and ROOT/besteffort/pod<uid>
// for the others, as Kubernetes lays them out.
//
// A memory limit is one of memory and swap together, where the kernel counts swap. The root weighs half of what a
// cgroup does that nobody has set, and so less than the daemon's.
//
// ROOT-shims, which weighs as much, holds the runtime's processes that look after the containers. Whatever the
// daemon was started in, a systemd service for one, may be ended as a whole without them, and so without the pods.
//
// It promises: Ensure and Remove may be called again at any time; Remove leaves nothing, and kills
// what should still run there. Both versions of cgroups are served; where both are mounted and v1
// holds the controllers, v1 is.
//
// The kubelet calls it. Cgroups survive a kill -9 of the daemon; Pods lists those there are.
package cgroup
