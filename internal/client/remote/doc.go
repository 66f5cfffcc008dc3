// Package remote is client.Interface over HTTP, for any server of the Kubernetes API.
//
// It promises what package client promises: errors are the server's Status bodies as *apierrors.StatusError, a watch
// is the chunked stream of WatchEvents, and a server that cannot be reached is an *Unreachable, with the address and
// what to do. It retries nothing: informers and the command line know better when a retry makes sense.
//
// Workers outside the master's process use it, and package ctl, which also needs more than objects: logs, tables,
// versions, the streams of containers and the routes under /minik8s.
//
// It holds connections and nothing else: a kill -9 loses the watches and streams that were open.
package remote
