// Package probe asks a container how it is, or tells it that something begins or ends: one request by
// HTTP, TCP, gRPC or a command in the container, and its answer.
//
// It promises: a request ends with its context, keeps no connection and leaves no process behind. An
// answer that says no is a *Failure, with words for people; any other error means that nobody could be
// asked, and says nothing about the container.
//
// The kubelet calls it, counts the answers and decides; nothing here is remembered.
package probe
