// Package fake is a cri.Runtime in memory, for tests of the kubelet and for thousands of hollow nodes. Containers
// start at once and run until Exit or StopContainer.
//
// It promises the contract of package cri, and checks that the caller keeps to it: Violations lists each breach.
// Hooks make calls fail, wait or exit. Restart simulates a kill -9 of the daemon: streams end, state stays.
package fake
