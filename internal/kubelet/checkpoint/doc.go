// Package checkpoint keeps the node's pods, as the API last showed them, in files, so that a kubelet that starts while
// no master can be reached knows which pods are its own, and restarts and probes them.
//
// It promises: a file is always whole after a crash of the daemon; after a power cut it may be damaged, and is ignored then; it is root's alone; what a pod refers to (Secrets, ConfigMaps) is not in
// it. A pod is written soon after it has changed, in the background, and without waiting for the disk: a file that is
// missing or old after a crash costs nothing but the time until the API answers, which is always believed more.
//
// The kubelet makes one Store where its API is on another machine. Its files are all its state.
package checkpoint
