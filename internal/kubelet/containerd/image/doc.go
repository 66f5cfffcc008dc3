// Package image is the images of this node: references, import of archives, pull from registries, and damage found
// and repaired.
//
// Who calls it: the runtime makes one Store and passes it to the kubelet as cri.Images; it makes containers from the
// Images that Get returns, and calls Repair for those that failed like programs with damaged files.
//
//	store.go   the Store
//	image.go   references, looking up, listing, removing; what is read out of an image
//	import.go  archives, one or a directory of them
//	pull.go    registries: progress, logins, errors
//	layers.go  where layers are unpacked, and small files out of them
//	verify.go  comparing files with the content they were unpacked from, and unpacking them again
//	repair.go  when that is done, and what follows if the content is damaged too
//
// # What survives
//
// An image that is reported as imported or pulled is on the disk, even after a power failure: the files of a layer
// are synced before its snapshot is committed, and all of the store at the end. Layers from a version that did not
// sync are compared with their stored content before their first use, and so is every image whose containers end like
// those of a damaged one. A layer that differs is unpacked again, in place; if the stored content is damaged too, the
// image is removed, and its archive is imported again or the kubelet pulls it.
//
// After a kill -9, an image that was recorded but not unpacked is unpacked when it is needed.
package image
