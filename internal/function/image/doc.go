// Package image makes the image of a function: a base image and one layer with the function's files and the server that calls it.
//
// It promises the same bytes for the same function and base, so that any master can make an image again that another one made:
// times are zero, files are in order, and nothing of the machine is in it.
// An error of a registry of others says whether it is about one image, and has nothing of a login.
//
// The function controller calls it, and the registry of images when it has not what it is asked for. It keeps the base's files,
// unpacked from an archive; everything else is made anew.
//
//	base.go   the base image, from an OCI archive
//	build.go  the layer, and the image
//	push.go   to a registry, and out of it again
package image
