// Package probe makes one probe of a container, or runs one lifecycle hook: a request by HTTP, TCP, gRPC or a command
// in the container, and its answer.
//
// It promises: a request ends with its context, keeps no connection and leaves no process behind. A negative answer
// is a *Failure, with a message for people; any other error means that the request could not be made, and says
// nothing about the container.
//
// The kubelet calls it, counts the answers and decides; nothing here is remembered.
package probe
