// Package txn writes changes with guards as transactions of etcd, and reads from the answer which guard did not hold. It is
// the same for the etcd inside and for an external one. It is pure and holds nothing.
package txn
