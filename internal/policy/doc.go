// Package policy carries NetworkPolicies out on this node: it keeps the part of the table of Services that lets through, of
// what pods of this node send and get, what their policies allow.
//
// Who calls it: roles, as a part on every node that has pods. It needs the NetworkPolicies of all namespaces (as an informer,
// which it runs) and, only while there is one, the addresses and labels of all pods and the labels of all namespaces. The
// kubelet calls Admit before a pod's first process starts, and Release when its addresses are free. Which rules there are, and
// why, is in README.md.
//
//	plan       what a policy means, without any nftables; pure
//	rules.go   names, and what the rules of each chain are
//	state.go   pods, policies and who is selected; a change gives the edit that the kernel needs
//	things.go  the sets and chains that are needed for that, and no others
//	ledger.go  what the table should have, and the difference to what it had
//	policy.go  the part: follows the kinds and writes the edits
//	follow.go  what runs only while there is a policy
//	admit.go   pods of this node that the API does not know the addresses of yet
//
// It promises: all that came since the last batch is one transaction of the kernel, which touches only what changed; at no
// moment a pod is open because its policies are being changed. A policy counts for connections that stand, too: each packet
// in the direction in which a connection was opened is judged, and only answers pass unasked. Until all kinds have been
// listed nothing is changed. What others change in our part is repaired, as nft's Keeper says.
//
// # What survives
//
// The rules are the kernel's and stay when the daemon ends, also by kill -9. Nothing is written to disk: all names follow from
// the objects alone, so that the next run finds its own again. While no master can be reached, pods that start then have no
// policies yet; those that run keep theirs.
package policy
