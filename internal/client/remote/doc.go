// Package remote is client.Interface over HTTP: the Kubernetes API as a server elsewhere speaks it.
//
// It promises what package client promises, by the wire's own means: errors are the server's Status
// bodies as *apierrors.StatusError, a watch is the chunked stream of WatchEvents, and a server that
// cannot be reached is an *Unreachable that says where was looked and what to do. Nothing is tried
// again in here: the informers and the command line know better when that makes sense.
//
// Workers that are not in the master's process use it, and package ctl, which also needs what is not
// an object: logs, tables, versions, the streams of containers and the routes under /minik8s.
//
// It holds connections and nothing else: a kill -9 loses the watches and streams that were open.
package remote
