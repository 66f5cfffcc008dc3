// Command bench measures minik8sd from the outside, like a client. It prints each figure with the goal and with what
// limits it. It starts the daemon that `make build` built, in its own network namespace and directory, and removes
// everything afterwards.
//
// Here are the flags, the parts in the order in which they are measured, and the report's file. How a part measures is in the room
// of its subject; no room uses another.
//
//	machines  the daemon as such, and several that are one cluster
//	objects   the API, the store and the scheduler, with many objects
//	pods      pods that really run
//	traffic   network, Services, policies, names, the gateway
//	work      functions, workflows, GPU jobs
//	bed       what all of them need
package main
