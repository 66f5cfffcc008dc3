// Package dnsobject says of DNS objects whether everything that their paths name exists.
//
// It promises: the condition Ready of each DNS object is True when each Service that a path names has the port and an
// endpoint that gets requests, and otherwise False; the reason is that of the first thing that is missing (ServiceNotFound
// before PortNotFound before NoEndpoints), and the message names the paths. What counts as an endpoint is decided by
// gateway/backends, so the condition and the gateway's own pages agree. An IP address is taken as it is. Nothing is written
// while nothing changes. An Event tells what is missing, once, and later that it is there.
//
// It reads DNS objects, Services and EndpointSlices, and writes the status of the first, and Events. roles runs it on the
// master that leads. It keeps nothing: after a kill -9 the first lists show what there is.
package dnsobject
