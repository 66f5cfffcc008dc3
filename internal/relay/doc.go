// Package relay forwards a port of the host in user space, by TCP or UDP. It is for ports on loopback: to route packets for
// 127.0.0.0/8 to pods, the kernel would have to accept packets for them from a pod's link.
//
// Who calls it: network/hostports for the host ports of pods, proxy for node ports. It knows neither. A TCP connection goes
// to a target that is asked for when it comes, and stays there; so do the datagrams of a UDP client, until there are none
// for two minutes, its target is gone, or many others have come. Connections end with the process, also by kill -9; nothing survives.
package relay
