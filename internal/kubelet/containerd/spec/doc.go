// Package spec decides what a container's process is and what it is given: its OCI specification, its user, and the
// files in its /etc. All of it follows from the pod's configuration, the image's, and the host's abilities.
//
// Who calls it: the runtime, for each container and sandbox.
//
//	spec.go      the specification: command, environment, namespaces, resources
//	mounts.go    mounts and devices
//	security.go  capabilities, seccomp, masked paths
//	user.go      users and groups by the image's files
//	etcfiles.go  hosts, hostname, resolv.conf
//	pause.go     the container that holds a shared process namespace
//	host.go      what of the host matters to the above
//
// It keeps and writes nothing, so a kill -9 is no matter to it. The host's files are read where that is said.
package spec
