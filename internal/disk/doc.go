// Package disk is how the daemon writes files of its own: whole or not at all, on the disk when they are
// said to be, and closed to the machine's other users.
//
// It promises: a file that WriteFile or Create has replaced holds the old content or the new one, at
// whatever moment the power is cut, and the new one once they have returned. Publish promises the same
// of a process that is killed, not of the power: it is for what means nothing after a reboot, and costs no
// wait for the disk. Private makes a directory closed, also one that was open before.
//
// Who calls it: whatever writes a file that is read again by another start. What is elsewhere made durable:
// etcd's log and tree and containerd's databases sync themselves on each commit; the layers of images are
// synced by containerd before they count as unpacked; a volume made from objects is compared with them
// before each start of a pod, so what a power cut left of it is written again. Logs, and what pods write,
// are the pods': nobody syncs them, as in Kubernetes.
package disk
