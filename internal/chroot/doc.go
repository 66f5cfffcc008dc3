// Package chroot takes this program out of a chroot before it starts containers.
//
// A container runtime enters a running container by its mount namespace, and is then at that namespace's root. In a chroot
// that is the wrong place: the container's root is where the chroot was, one level below, and a command run by exec finds
// itself among the machine's own files. Mount namespaces made by pivot_root have no such level, which is why containers and
// systemd's RootDirectory= are fine and chroot(8), schroot and debootstrap's like are not.
//
// So Leave starts the program again, as the same process, in a mount namespace whose root is the chroot's. Mounts that are
// made outside later are seen inside where they are shared, those made inside are not seen outside. They last as long as a
// process in there: after a kill -9 the keepers of running containers, which the next daemon joins.
//
// Package roles calls it for a worker and for what cleans up after one, internal/machine for tests. It needs Linux 5.2. Outside
// a chroot it changes nothing.
package chroot
