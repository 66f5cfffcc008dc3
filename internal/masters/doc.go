// Package masters knows where the masters' APIs are, on a master where those of the others are: from the Peers, which are the Nodes in short, and from a file while no master can
// be asked.
//
// A master is a Node with the control-plane label that says where its API is, in the annotation minik8s.io/api-address; both
// are set by the master's own kubelet, and the API refuses them to others (package authorization). A Node that is deleted is
// a master that is gone. One that is silent still counts: to find that out is for those who connect.
//
// It promises: who follows the masters is told the whole list, and again only when it changes; what it was told is in the
// file by then, unless that cannot be written. A list without any master is never told but on a master itself: the last one stays, because
// somebody must be asked when the Nodes are back.
//
// Who calls it: roles, with an informer of the Peers that others on the machine follow too. The file survives a kill -9, and
// holds one list or the other at whatever moment that comes.
package masters
