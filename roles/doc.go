// Package roles is the composition root: what a daemon is made of, by its roles.
//
//	              Daemon
//	  ___________/      \____________
//	 /   master      worker          \
//	storage (etcd)   containerd --- containerd.Network --> network
//	registry (cache) network
//	apiserver        kubelet  --- client.Interface (local) --> registry
//	scheduler        kubelet-server <--- HTTPS --- apiserver
//	controllers      images
//
// A worker without the role master has an identity (certificates, join tokens) in the place of etcd, registry and apiserver,
// and reaches them over HTTPS: client.Interface (remote). Between them is a balancer on the worker's loopback address, which
// knows all masters from their Nodes, and from an earlier run. A master has the same behind its API's port (door), for
// clients on it while its own API is of no use, and its kubelet a client that goes there then (package fallback). The kubelet
// of a master whose own API does not come starts without it. A master without the role worker has a Node that takes
// no pods, and of the pods' network what its host needs to reach those of others.
//
// Where a master keeps the cluster's objects is behind the interface storage: in the etcd inside (embedded), of which it is a
// member, or with --etcd-servers in one that others run (outside). The parts know only the store that it has opened.
//
// A further master (--server with the role master) gets the cluster's keys from another one (package membership), and its
// etcd is a member of the one that they have together; outside it uses the same one. Each serves the API; scheduler and
// controllers run on the one that leads, by Raft inside, by a lease outside. With the etcd inside each saves copies of the
// store (package snapshots), and Restore and Recover are for a daemon that is stopped.
//
// What a machine's address is, is found once, when a Daemon is made. When it changes Run ends with ErrMoved, and main starts the
// program again (Again), so that no part has to follow it (moved.go).
//
// The end-to-end tests start a Daemon, too. It promises: one daemon per data directory, which only root may enter,
// and from which clean removes only what the daemon made; parts start when what they need is ready; SIGTERM (the end
// of Run's context) stops all of them within 5 s and leaves pods running; the next start finds the pods. main calls
// it.
package roles
