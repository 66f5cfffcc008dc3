// Package hostdns has the programs of this machine ask a DNS server of ours, too, in one of two ways.
//
// Where they ask systemd-resolved, that is told over D-Bus to ask ours by a link of its own (resolved.go): names of the
// cluster's domain by it alone, all others beside the machine's own servers. Without a link of its own it would ask ours in
// the place of all others, and go on so after the daemon has ended.
//
// Elsewhere a few marked lines at the beginning of the file that names the machine's servers (/etc/resolv.conf, see
// resolv.conf(5)) put ours before them (hostdns.go), and are taken out again. The machine's own servers stay in the file, as
// a fallback. What others write into the file meanwhile stays there, and our lines come back. If the file was a link, it
// is one again in the end; while it is not, what others write to the link's target is not seen.
//
// In both ways, while ours is away, also after a kill -9, a question costs no more than a refused packet, and only our names
// are unknown. But when the machine was killed and starts without a daemon, the lines still are in the file, and nothing
// refuses: then each look-up waits for the resolver's time-out, until a daemon or clean takes the lines out. And by
// systemd-resolved a host of a DNS object that the machine's own servers know, too, gets the answer that comes first.
//
// Who calls it: roles, with --host-dns, and clean; package network makes the link. Rest and Uplinks are for those who mean
// the machine's own servers, whoever is asked first. It knows nothing of the cluster. The lines and the link survive a
// kill -9; the next daemon or clean finds them by their owner.
package hostdns
