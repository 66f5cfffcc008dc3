// Package cgroup makes and removes the cgroup of a pod, inside which the runtime makes those of its
// containers: ROOT/pod<uid> for Guaranteed pods, ROOT/burstable/pod<uid> and ROOT/besteffort/pod<uid>
// for the others, as Kubernetes lays them out.
//
// A memory limit limits memory and swap together, where the kernel accounts for swap. The root has half of the
// default CPU weight, and so less than the daemon's cgroup.
//
// ROOT-shims, with the same weight, is the cgroup of the runtime's shims. So when all of the daemon's cgroup is
// killed, by systemd for example, the shims and the pods keep running.
//
// It promises: Ensure and Remove may be called again at any time; Remove leaves nothing, and kills processes that
// still run there. Both versions of cgroups are supported; where both are mounted and v1 has the controllers, v1 is
// used.
//
// Reader, OOMKills and Has read what the kernel knows of any cgroup, a container's for example.
//
// The kubelet and its runtime call it. Cgroups survive a kill -9 of the daemon; Pods lists those there are.
package cgroup
