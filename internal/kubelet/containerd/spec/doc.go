// Package spec makes a container's OCI specification, its user, and the files in its /etc, from the pod's
// configuration, the image's, and the host's abilities.
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
// It has no state and writes nothing, so a kill -9 does not affect it. Functions that read the host's files say so.
package spec
