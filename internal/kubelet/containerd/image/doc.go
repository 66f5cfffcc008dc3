// Package image is the images of this node: references, import of archives, pull from registries, and damage found
// and repaired.
//
// Who calls it: the runtime makes one Store and hands its cri.Images side on to the kubelet; it makes containers from
// the Images that Get returns, and reports those that failed as programs do whose files are damaged.
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
// An image that is said to be imported or pulled is on the disk, also after a power cut: the files of a layer are
// synced before its snapshot is committed, and all of the store at the end. Layers of a version that did not wait are
// compared with the content they were unpacked from before their first use, and so is every image whose containers
// end as those of a damaged one do. What differs is unpacked again, in its place; if the content is damaged too, the
// image is removed and its archive imported again, or the kubelet pulls it.
//
// After a kill -9 an image that was recorded, but not unpacked, is unpacked when it is needed.
package image
