// Package trace follows a connection from a pod to a Service, step by step, then has it tried, and says where it stops.
//
// It promises: each step is what the cluster has at this moment: the name as the pod's own question finds it, the rules as
// they are in the kernel of the pod's node, listeners and connections as they answer. Nothing but connections without
// content and one DNS question is sent. Of UDP and SCTP only what is known without sending is said. Endpoints are tried at
// the same time, so that the whole takes a few seconds at most.
//
// ctl calls it and prints the result. It keeps no state.
//
//	trace.go      the steps and the verdict
//	endpoints.go  what is known of each endpoint
package trace
