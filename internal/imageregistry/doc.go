// Package imageregistry is the cluster's own registry of images: CNCF distribution, in this process, with its files below a
// folder of the data directory. It keeps the images of functions, and any other that somebody pushes.
//
// It promises what the OCI distribution specification says of a registry. Who may do what is decided before a request comes here.
// The registry starts with the first request: nobody who pushes and pulls nothing pays for it. An image that it has not, as when
// another master made it, it asks Config.Missing for, which may push it here; then it answers.
//
// Package roles makes one on each master. Its files survive everything; an upload that was cut off is begun anew by its client.
// Images that nobody names any more are removed by Sweep, during which nothing can be pushed, since distribution's own collection
// wants that.
//
//	registry.go  the registry, and what it has not
//	push.go      what may be pushed: while the disk has room, and without standing still
//	local.go     requests within the process
package imageregistry
