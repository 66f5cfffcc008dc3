// Package roles is the composition root: what a daemon is made of, by its roles.
//
//	              Daemon
//	  ___________/      \____________
//	 /   master      worker          \
//	etcd             containerd --- containerd.Network --> network
//	registry (cache) network
//	apiserver        kubelet  --- client.Interface (local) --> registry
//	scheduler        images
//	controllers
//
// Daemon is a type that the end-to-end tests start too. It promises: one daemon per data directory, which nobody
// but root may enter, and of which clean removes only what the daemon made;
// parts start when what they need is ready; SIGTERM (the end of Run's context) stops all of them within
// 5 s and leaves pods running; the next start finds them. main calls it.
package roles
