// Package chroot takes this program out of a chroot before it starts containers.
//
// A container runtime enters a running container by its mount namespace, and is then at that namespace's root. In a chroot
// that is the wrong place: the container's root is where the chroot was, one level below, and a command run by exec finds
// itself among the machine's own files. Mount namespaces made by pivot_root have no such level, which is why containers and
// systemd's RootDirectory= are fine and chroot(8), schroot and debootstrap's like are not.
//
// So Leave starts the program again, as the same process, in a mount namespace whose root is the chroot's. Mounts that are
// made outside later are seen inside, those made inside are not seen outside and end with the last process in there: after
// a kill -9 the next daemon does not find the memory-backed volumes of the pods that still run, and gives a container that
// starts again an empty one.
//
// Package main calls it for a worker, internal/machine for tests. It needs Linux 5.2. Outside a chroot it changes nothing.
package chroot
