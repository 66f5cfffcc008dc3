// Package hostports is what the host ports of a pod need: elements of the packet filter's table, and on loopback a
// forwarder in the daemon.
//
// Who calls it: package network, which has the table and knows who has which port; it serialises the calls. A port is
// for one address of the host or for all of them, by TCP, UDP or SCTP.
//
// A host port on 127.0.0.1 is forwarded in user space by the daemon (TCP and UDP). To route it (route_localnet), the
// kernel would have to accept packets for 127.0.0.0/8 from a pod's link, and only a rule that anybody can flush would
// protect the host's own loopback from the pod.
//
// Connections on loopback end with the daemon, also by kill -9; all others are the kernel's and continue without it.
package hostports
