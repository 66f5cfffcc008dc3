// Package disk writes the daemon's own files: atomically, durably where that is promised, and not readable by the
// machine's other users.
//
// It promises: a file that WriteFile or Create has replaced holds the old content or the new one, at whatever moment
// the power fails, and the new one once they have returned. Publish promises the same only if the process is killed,
// not if the power fails: it is for files that mean nothing after a reboot, and does not wait for the disk. Private
// makes a directory accessible to its owner only, also one that was open to others before.
//
// Who calls it: code that writes files which a later start reads. Made durable elsewhere: etcd's log and database and
// containerd's databases sync themselves on each commit; the layers of images are synced by containerd before they
// count as unpacked; a volume made from objects is compared with them before each start of a pod, so it is written
// again after a power failure. Logs, and files that pods write, are not synced, as in Kubernetes.
package disk
