// Package fake is a cri.Runtime in memory, for tests of the kubelet and for hollow nodes by the
// thousand. Containers start at once and run until they are told otherwise.
//
// It promises the contract of package cri, and checks the caller's side of it: Violations lists
// each breach. Hooks make a test's calls fail, wait or exit. Restart is what a kill -9 of the daemon
// is to a real runtime: streams end, state stays.
package fake
