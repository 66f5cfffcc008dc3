// Package storage shows and changes the members of the cluster's store, which are its masters, and saves copies of it
// (packages membership and store/etcd).
//
// It promises: a copy is written to its file whole and checked, or not at all, and only its owner can read it. ctl's
// command etcd calls it. It keeps nothing. Restoring a copy is not done here, because no API runs then: see ctl.Offline.
package storage
