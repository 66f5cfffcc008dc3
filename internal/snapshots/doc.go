// Package snapshots saves copies of the store in a directory, at intervals, and removes the oldest.
//
// Each master does this for itself, so that copies outlive the loss of any machine. It promises: a copy is there whole or
// not at all, and only root can read it, for it contains Secrets; none is made when nothing has changed since the last,
// or when it would leave the disk so full that writes are refused. The time of the last copy is known over restarts by
// its name; between copies nothing runs but one timer.
//
// roles makes one on a master. "minik8sd ctl etcd restore" reads what it has written.
package snapshots
