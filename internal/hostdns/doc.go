// Package hostdns has the programs of this machine ask a DNS server of ours before their own: it puts a few marked lines at
// the beginning of the file that names the machine's servers (/etc/resolv.conf, see resolv.conf(5)), and takes them out again.
//
// It promises: the machine's own servers stay in the file, as a fallback. So while ours is away, also after a kill -9, a
// question costs no more than a refused packet, and only our names are unknown. What others write into the file meanwhile
// stays there, and our lines come back. If the file was a link, as with systemd-resolved, it is one again in the end; while
// it is not, what others write to the link's target is not seen.
//
// Who calls it: roles, with --host-dns, and clean. Rest is for those who read the file and mean the machine's own servers.
// It knows nothing of the cluster. The lines survive a kill -9; the next daemon or clean finds them by their owner.
package hostdns
