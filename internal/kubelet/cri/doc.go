// Package cri is the interface between the kubelet, which decides, and the container runtime, which acts. (It is not
// Kubernetes' Container Runtime Interface, but has the same purpose.)
//
// Runtime is implemented by kubelet/containerd on real containers and by cri/fake in memory;
// cri/critest is the contract both pass. The kubelet and tests call it.
//
// What survives a kill -9 of the daemon: everything Runtime reports. Sandboxes, containers, their
// attempt numbers, addresses and exit codes are found again by Pods after a restart; a half-made
// sandbox or container is either finished by calling the same method again or removed by Remove*.
package cri
